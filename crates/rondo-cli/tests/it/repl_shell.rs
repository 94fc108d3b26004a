//! The shell at the prompt.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, F2, Person, TAB};
use crate::repl::{leave, messages, said, start};
use rondo_testkit::Server;
use serde_json::json;
use std::time::Duration;

fn bash() -> TestEnv {
    TestEnv::new().var("SHELL", "/bin/bash")
}

async fn at_shell(env: &TestEnv, server: &Server) -> Person {
    let mut person = start(env, server, &["--mode", "shell", "--yolo"]);
    person.prompt("shell").await;
    person
}

#[tokio::test]
async fn what_is_set_lasts_and_the_prompt_follows() {
    let server = serve(Vec::new()).await;
    let env = bash();
    std::fs::create_dir(env.project().join("below")).unwrap();
    let mut person = at_shell(&env, &server).await;
    for line in ["cd below", "export A=1; b=2; f() { echo \"$A$b$1\"; }"] {
        person.enter(line).await;
        person.prompt("shell").await;
    }
    person.enter("f 3 | cat").await;
    person.sees("\n123\n").await;
    person.sees("/project/below $").await;
    person.prompt("shell").await;
    person.enter("false").await;
    person.sees("/project/below [1] $").await;
    person.prompt("shell").await;
    person.enter("true").await;
    person.prompt("shell").await;
    leave(person).await;
}

#[tokio::test]
async fn a_command_is_stopped_and_the_shell_stays() {
    let server = serve(Vec::new()).await;
    let env = bash();
    let mut person = at_shell(&env, &server).await;
    // What says so is what is stopped: bash may miss a Ctrl-C while it starts a command.
    let line = "a=kept; sh -c 'echo begun; exec sleep 100'";
    person.enter(line).await;
    person.sees("\nbegun").await;
    person.press(CTRL_C).await;
    person.sees("[130] $").await;
    person.prompt("shell").await;
    person.enter("echo $a").await;
    person.sees("\nkept\n").await;
    person.prompt("shell").await;
    leave(person).await;
}

#[tokio::test]
async fn a_program_has_the_whole_terminal_and_gives_it_back() {
    let server = serve(Vec::new()).await;
    let env = bash();
    let mut person = at_shell(&env, &server).await;
    person.resize(30, 90);
    person
        .enter("read -p 'name? ' n; echo \"<$n>\"; stty size")
        .await;
    person.types_behind("name? ").await;
    person.press("日本\r").await;
    person.sees("\n<日本>\n30 90\n").await;
    person.prompt("shell").await;
    person
        .enter("printf '\\033[?1049h'; read -n 1; printf '\\033[?1049l'")
        .await;
    person.is_alternate().await;
    person.press("q").await;
    person.prompt("shell").await;
    person.sees("<日本>").await;
    leave(person).await;
}

#[tokio::test]
async fn jobs_run_behind_the_prompt_and_are_ended() {
    let server = serve(Vec::new()).await;
    let env = bash();
    let mut person = at_shell(&env, &server).await;
    person.enter("sleep 1000 &").await;
    person.prompt("shell").await;
    person.enter("/ps").await;
    person.sees("Running").await;
    person.prompt("shell").await;
    person.enter("/stop 1").await;
    person.prompt("shell").await;
    person.enter("wait; echo over").await;
    person.sees("\nover\n").await;
    person.prompt("shell").await;
    leave(person).await;
}

#[tokio::test]
async fn a_shell_that_ended_is_started_anew_and_says_so() {
    let server = serve(Vec::new()).await;
    let env = bash();
    let mut person = at_shell(&env, &server).await;
    person.enter("exit 3").await;
    person.sees("The next command starts a new one").await;
    person.prompt("shell").await;
    person.enter("echo again").await;
    person.sees("This is a new one").await;
    person.sees("\nagain\n").await;
    person.prompt("shell").await;
    leave(person).await;
}

#[tokio::test]
async fn the_agent_is_asked_from_the_shell_and_works_where_it_is() {
    let server = serve(vec![
        calls("exec", &json!({"command": "touch made-$SAID"})),
        says("It is below."),
    ])
    .await;
    let env = bash();
    std::fs::create_dir(env.project().join("below")).unwrap();
    let mut person = at_shell(&env, &server).await;
    person.enter("cd below; export SAID=here").await;
    person.prompt("shell").await;
    person.enter("# where are we?").await;
    person.sees("It is below.").await;
    person.prompt("shell").await;
    leave(person).await;
    let asked = said(&server, 0);
    assert!(
        asked[0].starts_with("where are we?\n\n<shell "),
        "{asked:?}"
    );
    assert!(
        asked[0].contains("$ cd below; export SAID=here\n"),
        "{asked:?}"
    );
    assert!(env.project().join("below/made-here").exists());
    assert_eq!(messages(&server, 1).len(), 4);
}

#[tokio::test]
async fn one_mark_shares_what_a_command_printed_and_two_do_not() {
    let server = serve(vec![says("Seen.")]).await;
    let env = bash();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("!echo shar''ed; false").await;
    person.sees("\nshared\n").await;
    person.prompt("agent").await;
    person.enter("!!echo priv''ate").await;
    person.sees("\nprivate\n").await;
    person.prompt("agent").await;
    person.enter("what was it?").await;
    person.sees("Seen.").await;
    person.prompt("agent").await;
    leave(person).await;
    let body = server.requests()[0].json().to_string();
    assert!(body.contains("exit_code=\\\\\\\"1\\\\\\\"") || body.contains("exit_code=\\\"1\\\""));
    assert!(
        body.contains("shared") && !body.contains("private"),
        "{body}"
    );
}

#[tokio::test]
async fn what_a_program_drew_on_the_whole_screen_is_not_shared_and_a_line_says_so() {
    let server = serve(vec![says("Seen.")]).await;
    let env = bash();
    let draws = r"printf 'before\n\033[?1049hdrawn\033[?1049lafter\n'; exit 3";
    env.write("edit.sh", draws);
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("!bash edit.sh").await;
    person.prompt("agent").await;
    person.enter("what was it?").await;
    person.sees("Seen.").await;
    person.prompt("agent").await;
    leave(person).await;
    let asked = said(&server, 0).pop().unwrap();
    let output =
        "$ bash edit.sh\nbefore\nafter\n[it used the full screen; its drawing is left out]\n";
    assert!(asked.contains(output), "{asked}");
    assert!(asked.contains("exit_code=\"3\""), "{asked}");
}

/// The terminal is the user's own and shows it; what it is shared with holds none of it.
#[tokio::test]
async fn a_key_in_what_a_command_printed_is_not_shared_although_colours_or_the_cut_split_it() {
    const KEY: &str = "sk-very-secret-0123456789";
    let server = serve(vec![says("Seen."), says("Seen too.")]).await;
    let env = bash().var("OPENAI_API_KEY", KEY);
    env.write("key.txt", KEY);
    // Its beginning is where the last 4,096 bytes begin.
    let filler = "x".repeat(4_096 - 15);
    env.write("long.txt", format!("{KEY}{filler}"));
    let split = "head -c 9 key.txt; printf '\\033[31m'; tail -c +10 key.txt; echo; base64 key.txt";
    env.write("split.sh", split);
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("!. ./split.sh").await;
    person.prompt("agent").await;
    person.enter("what was it?").await;
    person.sees("Seen.").await;
    person.prompt("agent").await;
    person.enter("/mode shell").await;
    person.prompt("shell").await;
    person.enter("cat long.txt").await;
    person.prompt("shell").await;
    person.enter("# and that?").await;
    person.sees("Seen too.").await;
    person.prompt("shell").await;
    leave(person).await;
    let asked = [said(&server, 0).pop(), said(&server, 1).pop()].map(Option::unwrap_or_default);
    assert!(asked[0].contains("\n[redacted]\n[redacted]"), "{asked:?}");
    assert!(asked[1].contains("\n[redacted]xxx"), "{asked:?}");
    for told in asked {
        for part in ["sk-", "0123456789", "c2st"] {
            assert!(!told.contains(part), "{part} in {told}");
        }
    }
}

#[tokio::test]
async fn words_are_completed_and_open_quotes_go_on() {
    let server = serve(Vec::new()).await;
    let env = bash();
    env.write("a file.txt", "inside\n");
    let mut person = at_shell(&env, &server).await;
    person.press("cat a").await;
    person.types_behind("cat a").await;
    person.press(TAB).await;
    person.types_behind("cat a\\ file.txt ").await;
    person.press("\r").await;
    person.sees("\ninside\n").await;
    person.prompt("shell").await;
    person.press("echo 'one\r").await;
    person.types_behind("  ").await;
    person.press("two'\r").await;
    person.sees("\none\ntwo\n").await;
    person.prompt("shell").await;
    leave(person).await;
}

#[tokio::test]
async fn start_files_that_hang_are_not_waited_for_by_whoever_presses_ctrl_c() {
    let server = serve(Vec::new()).await;
    let env = bash();
    std::fs::write(env.home().join(".bashrc"), "mkfifo ~/go; read x < ~/go\n").unwrap();
    let mut person = at_shell(&env, &server).await;
    person.enter("touch never").await;
    person.sees("Ctrl-C drops the line").await;
    person.press(CTRL_C).await;
    person.sees("the line was dropped").await;
    person.prompt("shell").await;
    std::fs::write(env.home().join("go"), "on\n").unwrap();
    person.enter("ls; echo there").await;
    person.sees("\nthere\n").await;
    person.prompt("shell").await;
    assert!(!env.project().join("never").exists());
    leave(person).await;
}

#[tokio::test]
async fn a_question_from_the_shell_takes_the_last_command_along_and_says_so() {
    let server = serve(vec![
        says("A typo."),
        says("Nothing new."),
        says("Not told."),
    ])
    .await;
    let env = bash();
    let mut person = at_shell(&env, &server).await;
    person.enter("seq 50 | sed 's/^/line /'; (exit 3)").await;
    person.sees("[3] $").await;
    person.prompt("shell").await;
    person.enter("# why?").await;
    person
        .sees("(exit code 3), with the last 40 lines of its output")
        .await;
    person.sees("A typo.").await;
    person.prompt("shell").await;
    person.enter("# and now?").await;
    person.sees("Nothing new.").await;
    person.prompt("shell").await;
    person.enter(" echo hush").await;
    person.sees("\nhush").await;
    person.prompt("shell").await;
    person.enter("# what did I say?").await;
    person.sees("Not told.").await;
    person.prompt("shell").await;
    leave(person).await;
    let asked = said(&server, 0).remove(0);
    assert!(asked.starts_with("why?\n\n<shell directory="), "{asked}");
    assert!(
        asked.contains("exit_code=\"3\"") && asked.contains("\nline 11\n"),
        "{asked}"
    );
    assert!(
        !asked.contains("\nline 10\n") && asked.contains("are left out]"),
        "{asked}"
    );
    let others = [said(&server, 1).pop(), said(&server, 2).pop()];
    assert_eq!(
        others,
        [Some("and now?".into()), Some("what did I say?".into())]
    );
}

#[tokio::test]
async fn alt_a_asks_about_a_command_that_failed() {
    let server = serve(vec![says("There is no such file.")]).await;
    let env = bash();
    let mut person = at_shell(&env, &server).await;
    person.enter("cat missing").await;
    person.sees("No such file or directory").await;
    person.prompt("shell").await;
    person.press("\x1ba").await;
    person.sees("There is no such file.").await;
    person.prompt("shell").await;
    leave(person).await;
    let asked = said(&server, 0).remove(0);
    assert!(
        asked.contains("$ cat missing\ncat: missing: No such file"),
        "{asked}"
    );
}

/// Adds up how often the threads of a process went to sleep.
fn sleeps(process: i32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_task = |task: std::io::Result<std::fs::DirEntry>| -> u64 {
        let status = std::fs::read_to_string(task.unwrap().path().join("status"));
        let status = status.unwrap_or_default();
        let line = |it: &&str| it.starts_with("voluntary_ctxt_switches:");
        let count = status
            .lines()
            .find(line)
            .and_then(|it| it.split('\t').nth(1));
        count.map_or(0, |it| it.parse().unwrap())
    };
    tasks.map(of_task).sum()
}

/// Time is what is measured here: a process that only waits goes to sleep once.
#[tokio::test]
async fn a_prompt_that_waits_does_nothing_in_any_mode() {
    let server = serve(Vec::new()).await;
    let env = bash();
    let mut person = at_shell(&env, &server).await;
    person.enter("echo o; sleep 0.01 & wait").await;
    person.sees("\no\n").await;
    for mode in ["shell", "python", "agent"] {
        person.prompt(mode).await;
        let mut calmest = u64::MAX;
        for _ in 0..10 {
            let before = sleeps(person.process());
            tokio::time::sleep(Duration::from_secs(1)).await;
            calmest = calmest.min(sleeps(person.process()) - before);
            if calmest == 0 {
                break;
            }
        }
        assert_eq!(calmest, 0, "{mode}");
        person.press(F2).await;
    }
}
