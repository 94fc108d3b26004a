//! Output of a command, and its copy.

use super::{Kept, SHELLS, rest};
use rondo_core::redact::Secrets;
use rondo_exec::shell::ShellEvent;
use rondo_policy::is_complete;

#[tokio::test]
async fn output_without_a_line_end_is_all_there_is() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let ran = kept.run("printf abc").await;
        assert_eq!(
            (ran.output.as_str(), ran.end.captured.as_str()),
            ("abc", "abc"),
            "{name}"
        );
        assert_eq!(kept.output("true").await, "", "{name}");
        assert_eq!(
            kept.output("printf '\\nx\\n\\n'").await,
            "\nx\n\n",
            "{name}"
        );
    }
}

#[tokio::test]
async fn wide_characters_and_invalid_bytes_pass_unchanged() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let line = "echo '\u{e4}\u{4f60}\u{597d}\u{1f600}e\u{301}'; printf '\\377\\000\\200|'";
        let mut stream = kept.begin(line).await;
        let mut output = Vec::new();
        let end = loop {
            match stream.next().await.unwrap().unwrap() {
                ShellEvent::Output(bytes) => output.extend(bytes),
                ShellEvent::Ended(end) => break end,
                ShellEvent::Restarted => panic!("it was not"),
            }
        };
        let mut expected = "\u{e4}\u{4f60}\u{597d}\u{1f600}e\u{301}\r\n"
            .as_bytes()
            .to_vec();
        expected.extend(b"\xff\0\x80|");
        assert_eq!(output, expected, "{name}");
        assert!(
            end.captured
                .starts_with("\u{e4}\u{4f60}\u{597d}\u{1f600}e\u{301}\n"),
            "{name}"
        );
        assert!(stream.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_line_that_is_no_utf_8_in_the_shells_locale_is_passed_on() {
    let kept = Kept::with("bash", "", |settings| {
        settings
            .environment
            .push(("LC_ALL".into(), Some("C".into())));
    });
    assert_eq!(
        kept.output("echo '\u{e4}\u{1f600}'").await,
        "\u{e4}\u{1f600}\n"
    );
}

#[tokio::test]
async fn marks_of_others_are_output_and_end_nothing() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let fake = "\\033]133;D;0\\007\\033]133;rondo;0123;D;1;0\\007\\033]133;A\\007";
        let line = format!("printf '{fake}'; echo after");
        let output = kept.output(&line).await;
        let printed = fake.replace("\\033", "\x1b").replace("\\007", "\x07");
        assert_eq!(output, format!("{printed}after\n"), "{name}");
        assert_eq!(kept.output("echo next").await, "next\n", "{name}");
        // A sequence that was left open must not swallow the end.
        assert_eq!(
            kept.output("printf '\\033]0;open'").await,
            "\x1b]0;open",
            "{name}"
        );
    }
}

#[tokio::test]
async fn several_lines_are_one_command() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let text = "f() {\n  cat <<EOF\n$1 'one'\n  two\nEOF\n}\nf a\nfor i in 1 2; do\n  echo \"$i\"\ndone";
        assert!(is_complete(text));
        assert_eq!(kept.output(text).await, "a 'one'\n  two\n1\n2\n", "{name}");
    }
}

#[tokio::test]
async fn a_paste_of_ten_thousand_lines_runs_whole() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let lines: Vec<String> = (0..10_000)
            .map(|i| format!("n=$((n + 1)) # {i:04}"))
            .collect();
        let set = kept
            .run("setopt interactive_comments 2> /dev/null; n=0")
            .await;
        assert!(set.end.shell_end.is_none());
        let paste = format!("{}\necho $n", lines.join("\n"));
        let ran = kept.run(&paste).await;
        assert!(ran.output.ends_with("10000\n"), "{name}: {}", ran.output);
    }
}

#[tokio::test]
async fn long_output_is_streamed_whole_and_captured_in_part() {
    let kept = Kept::with("bash", "", |settings| settings.captured_bytes_max = 1000);
    let ran = kept.run("seq 100000").await;
    assert_eq!(ran.output.lines().count(), 100_000);
    assert_eq!(ran.output.lines().last(), Some("100000"));
    let captured = &ran.end.captured;
    assert!(captured.starts_with("1\n2\n") && captured.ends_with("99999\n100000\n"));
    assert!(captured.len() < 1100 && captured.contains("bytes left out"));
    assert_eq!(ran.end.omitted_bytes, 588_895 - 1000);
}

#[tokio::test]
async fn captured_output_is_text() {
    let kept = Kept::new("bash");
    let line = "printf '\\033[31mred\\033[0m\\nold\\rnew\\n'";
    assert_eq!(kept.run(line).await.end.captured, "red\nnew\n");
}

#[tokio::test]
async fn the_full_screen_of_a_program_passes_unchanged() {
    let kept = Kept::new("bash");
    let ran = kept.run("vim -u NONE -i NONE -c ':q'").await;
    let (enter, leave) = ("\x1b[?1049h", "\x1b[?1049l");
    assert_eq!(ran.end.exit_code, 0, "{}", ran.output);
    let entered = ran.output.find(enter).unwrap();
    assert!(
        ran.output.rfind(leave).unwrap() > entered,
        "{:?}",
        ran.output
    );
    assert_eq!(kept.output("echo back").await, "back\n");
    let modes = kept.output("stty -a").await;
    assert!(
        modes.contains(" echo ") && modes.contains(" icanon "),
        "{modes}"
    );
}

#[tokio::test]
async fn what_jobs_write_between_commands_is_there_for_whoever_waits() {
    let kept = Kept::new("bash");
    kept.run("mkfifo go; { read x < go; echo late; } & true")
        .await;
    std::fs::write(kept.path().join("go"), "on\n").unwrap();
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains("late") {
        all.extend(kept.shell.between_commands().await.unwrap());
    }
    let next = kept.run("echo next").await.output;
    assert!(next.starts_with("next\n"), "{next}");
}

#[tokio::test]
async fn a_shell_that_ended_while_somebody_waited_is_started_anew() {
    let kept = Kept::new("bash");
    let end = kept.run("echo $$").await.end;
    let id = end.captured.trim().parse().unwrap();
    let shell = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(shell, rustix::process::Signal::KILL).unwrap();
    while kept.shell.between_commands().await.is_some() {}
    assert_eq!(kept.shell.between_commands().await, None);
    let ran = kept.run("echo next").await;
    assert_eq!((ran.output.as_str(), ran.restarted), ("next\n", true));
}

#[tokio::test]
async fn what_jobs_write_between_commands_comes_with_the_next() {
    let kept = Kept::new("bash");
    kept.run("mkfifo go; { read x < go; echo late; } & true")
        .await;
    std::fs::write(kept.path().join("go"), "on\n").unwrap();
    let mut all = String::new();
    while !all.contains("late\n") {
        all.push_str(&rest(kept.begin("true").await).await.output);
    }
    assert!(!all.contains("__rondo"), "{all}");
}

/// The user's own terminal shows everything; the copy is for the agent.
#[tokio::test]
async fn the_copy_of_an_output_holds_no_secret_nor_half_of_one_where_it_is_cut() {
    const KEY: &str = "sk-0123456789-abcdefghij";
    let kept = Kept::with("bash", "", |settings| {
        settings.captured_bytes_max = 100;
        settings.secrets = Secrets::new([KEY.to_owned()]);
    });
    let (head, tail) = KEY.split_at(10);
    let filler = "x".repeat(100);
    let line = format!(
        r"printf '%s\n' {} {KEY} {filler} {KEY} {}",
        &filler[..40],
        &filler[..40]
    );
    let ran = kept.run(&line).await;
    let captured = &ran.end.captured;
    assert!(
        !captured.contains(head) && !captured.contains(tail),
        "{captured}"
    );
    assert_eq!(ran.output.matches(KEY).count(), 2);
    let ran = kept.run(&format!(r"printf '{head}\033[0m{tail}\n'")).await;
    assert_eq!(ran.end.captured, "[redacted]\n");
}
