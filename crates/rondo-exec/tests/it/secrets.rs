//! Known secrets in the output of commands.

use crate::fixture::{Fixture, result};
use rondo_core::ports::{OutputSink, Tool};
use rondo_core::redact::Secrets;
use rondo_exec::ExecTool;
use serde_json::json;

const KEY: &str = "sk-very/secret+0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Of its inside: as it is, in base64 at two places and in hexadecimal digits.
const FORMS: [&str; 4] = [
    "very/secret",
    "dmVyeS9zZWNyZXQr",
    "cnkvc2VjcmV0",
    "766572792f736563726574",
];

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.options.secrets = Secrets::new([KEY.to_owned()]);
    std::fs::write(fixture.path().join("key"), KEY).unwrap();
    fixture
}

#[track_caller]
fn assert_clean(text: &str) {
    for form in FORMS {
        assert!(!text.contains(form), "{form} in {text}");
    }
}

#[tokio::test]
async fn no_form_of_a_secret_is_in_live_output_result_state_or_whole_output() {
    let mut fixture = fixture();
    fixture.options.output_bytes_max = 200;
    let command = format!(
        "head -c 20 key; tail -c +21 key; echo; base64 key; base64 -w0 key; echo; \
         (printf abc:; cat key) | base64; od -An -v -tx1 key | tr -d ' '; \
         seq 200; cat key; seq 200; fold -w 7 key; echo; \
         head -c 9 key; echo; \
         : {KEY}"
    );
    let told = fixture.run(&command).await;
    let spill = std::fs::read_to_string(told["full_output"].as_str().unwrap()).unwrap();
    let state = std::fs::read_to_string(fixture.state.path().join("key-1.json")).unwrap();
    let live = fixture.live();
    for text in [&told.to_string(), &spill, &state, &live] {
        assert_clean(text);
    }
    for text in [&spill, &live] {
        assert_eq!(text.matches("[redacted]").count(), 7, "{text}");
        assert!(text.ends_with("\nsk-very/s\n"), "{text}");
    }
    assert!(state.contains("; : [redacted]\""), "{state}");
}

#[tokio::test]
async fn terminal_sequences_hide_no_secret_from_what_is_kept_nor_from_live_output() {
    let fixture = fixture();
    let command = "head -c 9 key; printf '\\033[1m'; tail -c +10 key; echo; \
         sed 's/./&\\x1b]0;title\\x07\\x1b[38;5;196m/g' key; echo; \
         head -c 9 key; printf '\\033[1m'; sleep 0.2; tail -c +10 key; echo";
    let redacted = "[redacted]\n".repeat(3);
    assert_eq!(fixture.stdout(command).await, redacted);
    let behind = "\u{1b}]0;title\u{7}\u{1b}[38;5;196m";
    let live = format!("[redacted]\n[redacted]{behind}\n[redacted]\n");
    assert_eq!(fixture.live(), live);
}

#[tokio::test]
async fn the_halves_of_a_secret_are_not_shown_although_the_command_waits_between_them() {
    let fixture = fixture();
    let command = "head -c 40 key; sleep 0.2; tail -c +41 key; echo .";
    assert_eq!(fixture.stdout(command).await, "[redacted].\n");
    assert_eq!(fixture.live(), "[redacted].\n");
}

/// The command continues only because the question was shown, whose end may begin a secret.
#[tokio::test]
async fn a_question_that_ends_as_a_secret_begins_is_shown_while_the_command_waits() {
    let fixture = fixture();
    let gate = fixture.path().join("gate");
    let made = std::process::Command::new("mkfifo").arg(&gate).status();
    assert!(made.unwrap().success());
    let command = "printf 'which keys'; read go < gate; echo \" $go\"";
    let mut invocation = fixture.invocation(json!({ "command": command }));
    let (seen, pieces) = std::sync::mpsc::channel();
    invocation.output = OutputSink::new(move |text| {
        if text.ends_with('s') {
            let gate = gate.clone();
            std::thread::spawn(move || std::fs::write(gate, "all\n").unwrap());
        }
        seen.send(text).unwrap();
    });
    let tool = ExecTool::exec(fixture.options.clone());
    let result = result(tool.call(invocation).await);
    assert_eq!(result["stdout"], "which keys all\n");
    drop(tool);
    assert_eq!(pieces.try_iter().collect::<String>(), "which keys all\n");
}
