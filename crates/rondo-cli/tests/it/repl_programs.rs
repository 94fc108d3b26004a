//! Programs that take the whole terminal, and jobs, at the prompt's shell.

use crate::harness::{TestEnv, serve};
use crate::person::{CTRL_C, CTRL_Z, ESC, Person};
use crate::repl::{leave, start};

/// Sets everything that a program could, and dies.
const MESS: &str = r"
stty raw -echo
printf '\033[?1049h\033[?25l\033[?1h\033=\033[?1000h\033[?1006h\033[31mleft'
kill -9 $$
";
/// Says when it begins, when it continues, and when it ends.
const JOB: &str = r"
import itertools, os, signal
times = itertools.count(1)
def say(text): os.write(1, text.encode() + b'\n')
signal.signal(signal.SIGCONT, lambda *_: say(f'woken {next(times)}'))
try:
    say('begun')
    while True: signal.pause()
except KeyboardInterrupt:
    say('ended')
    raise SystemExit(7)
";

/// Starts the prompt in the shell; returns how it has the terminal set, too.
async fn at_shell(env: &TestEnv) -> (Person, String) {
    let server = serve(Vec::new()).await;
    let mut person = start(env, &server, &["--mode", "shell"]);
    person.prompt("shell").await;
    person.enter("echo ready").await;
    person.sees("\nready").await;
    person.prompt("shell").await;
    let settings = person.settings();
    (person, settings)
}

fn env() -> TestEnv {
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    env.var("LANG", "C.UTF-8")
}

/// The terminal is as it was, shows what is typed, and has its size.
async fn is_intact(mut person: Person, settings: &str, size: &str) {
    person.prompt("shell").await;
    assert_eq!(person.settings(), settings);
    person.enter("echo still | tr a-z A-Z; stty size").await;
    person.sees(&format!("\nSTILL\n{size}\n")).await;
    person.prompt("shell").await;
    leave(person).await;
}

#[tokio::test]
async fn vim_edits_a_file_and_gives_the_terminal_back() {
    let env = env();
    let (mut person, settings) = at_shell(&env).await;
    person.enter("vim -u NONE -N note.txt").await;
    person.is_alternate().await;
    person.sees("note.txt").await;
    person.press("i日本 is typed").await;
    person.sees("日本 is typed").await;
    person.press(ESC).await;
    person.press(":wq\r").await;
    is_intact(person, &settings, "40 100").await;
    let note = std::fs::read_to_string(env.project().join("note.txt")).unwrap();
    assert_eq!(note, "日本 is typed\n");
}

#[tokio::test]
async fn a_program_follows_the_terminals_size_and_so_does_the_prompt() {
    let env = env();
    let (mut person, settings) = at_shell(&env).await;
    let status = r"set ls=2 stl=%{&lines}\ by\ %{&columns}";
    person
        .enter(&format!("vim -u NONE -N --cmd '{status}'"))
        .await;
    person.sees("40 by 100").await;
    // It shows its first screen before it takes the signal of a new size.
    person.press(":echo 6*7\r").await;
    person.sees("42").await;
    person.resize(30, 70);
    person.sees("30 by 70").await;
    person.press(":q!\r").await;
    is_intact(person, &settings, "30 70").await;
}

#[tokio::test]
async fn less_pages_and_gives_the_terminal_back() {
    let env = env();
    let text: String = (1..=500).map(|n| format!("line {n} of it\n")).collect();
    env.write("long.txt", text);
    let (mut person, settings) = at_shell(&env).await;
    person.enter("less long.txt").await;
    person.is_alternate().await;
    person.sees("line 1 of it").await;
    person.press("G").await;
    person.sees("line 500 of it").await;
    person.press("?line 250\r").await;
    person.sees("line 250 of it").await;
    person.press("q").await;
    is_intact(person, &settings, "40 100").await;
}

#[tokio::test]
async fn top_runs_and_gives_the_terminal_back() {
    let env = env();
    let (mut person, settings) = at_shell(&env).await;
    person.enter("top").await;
    person.sees("load average").await;
    person.press("q").await;
    is_intact(person, &settings, "40 100").await;
}

#[tokio::test]
async fn a_program_that_is_stopped_gives_the_terminal_back_and_takes_it_again() {
    let env = env();
    let (mut person, settings) = at_shell(&env).await;
    person.enter("vim -u NONE -N note.txt").await;
    person.is_alternate().await;
    person.press("ihere").await;
    person.sees("here").await;
    person.press(ESC).await;
    person.press(CTRL_Z).await;
    person.prompt("shell").await;
    assert_eq!(person.settings(), settings);
    person.enter("jobs").await;
    person.sees("Stopped").await;
    person.prompt("shell").await;
    person.enter("fg").await;
    person.is_alternate().await;
    person.press(":q!\r").await;
    is_intact(person, &settings, "40 100").await;
}

#[tokio::test]
async fn a_job_is_stopped_goes_on_behind_is_brought_back_and_ended() {
    let env = env();
    env.write("job.py", JOB);
    let (mut person, settings) = at_shell(&env).await;
    for (line, key, seen) in [
        ("python3 job.py", Some(("\nbegun", CTRL_Z)), "Stopped"),
        ("bg", None, "woken 1"),
        ("jobs", None, "Running"),
        ("kill -STOP %1; sleep 0; jobs", None, "Stopped"),
        ("echo back; fg", Some(("\nwoken 2", CTRL_C)), "ended"),
    ] {
        person.enter(line).await;
        let entered = format!("$ {line}");
        if let Some((said, key)) = key {
            person.sees_below(&entered, said).await;
            person.press(key).await;
        }
        person.sees_below(&entered, seen).await;
        person.prompt("shell").await;
    }
    person.sees("[7] $").await;
    person.enter("jobs | wc -l").await;
    person.sees("\n0\n").await;
    is_intact(person, &settings, "40 100").await;
}

/// The line is edited on below it.
#[tokio::test]
async fn what_a_job_prints_stands_above_the_line_that_is_edited() {
    let env = env();
    let (mut person, settings) = at_shell(&env).await;
    person
        .enter("mkfifo go; { read x < go; echo \"$x\"; } &")
        .await;
    person.prompt("shell").await;
    person.press("echo ed").await;
    person.types_behind("$ echo ed").await;
    std::fs::write(env.project().join("go"), "from afar 日本\n").unwrap();
    person.sees("\nfrom afar 日本").await;
    person.types_behind("$ echo ed").await;
    person.press("ited\r").await;
    person.sees("\nedited\n").await;
    is_intact(person, &settings, "40 100").await;
}

/// Whatever a program did to the terminal and left so, the prompt has its own.
#[tokio::test]
async fn a_program_that_leaves_a_mess_spoils_no_prompt() {
    let env = env();
    let (mut person, settings) = at_shell(&env).await;
    env.write("mess", MESS);
    person.enter("bash mess").await;
    person.sees("[137] $").await;
    is_intact(person, &settings, "40 100").await;
}

#[tokio::test]
async fn the_terminal_is_left_as_it_was_found() {
    let env = env();
    let server = serve(Vec::new()).await;
    let mut person = start(&env, &server, &[]);
    let found = person.settings();
    person.prompt("agent").await;
    assert_ne!(person.settings(), found);
    person.enter("/mode shell").await;
    person.prompt("shell").await;
    person.press("\x04").await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(person.settings(), found);
}
