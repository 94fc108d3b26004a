//! Texts that a person reads, as a whole: help, errors, transcripts, the line prompt and the screen. `cargo insta
//! review` shows what a change makes of them; each was read before it was accepted.

use crate::harness::{Shown, TestEnv, ask_args, calls, says, serve};
use crate::person::{CTRL_D, ENTER, Person};
use crate::repl::start;
use crate::screen::{REVIEW, leave, open};
use bytes::Bytes;
use rondo_testkit::{CallScript, ReplyScript, Response, Script, Server, faults, openai};
use serde_json::json;
use std::fmt::Write as _;

/// Parts that differ from run to run, with their placeholders.
const VARIES: [(&str, &str); 11] = [
    (r"s-[0-9a-f]{11}-[0-9a-f]+", "[SESSION]"),
    (r"s-[0-9a-f]{4,}…", "[SESSION]"),
    (r"http://127\.0\.0\.1:\d+", "http://[SERVER]"),
    (r"127\.0\.0\.1:\d+", "[SERVER]"),
    (r"/tmp/\.tmp\w+", "[ROOT]"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "[TIME]"),
    (
        r"\b\d+\.\d+ ?s\b|\b\d+(\.\d+)? ?ms\b|\b\d+ ?s ago\b",
        "[DURATION]",
    ),
    (r"(?m)^\d{4}-\d\d-\d\d ", "[DAY] "),
    (r"t-[0-9a-f]{11}-[0-9a-f]+", "[TURN]"),
    // Columns are as wide as the paths and numbers in them.
    (r"(?m) {3,}(openai/test)$", "  $1"),
    (r"rondo \d+\.\d+\.\d+", "rondo [VERSION]"),
];

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    for (pattern, name) in VARIES {
        settings.add_filter(pattern, name);
    }
    settings
}

fn check(name: &str, text: &str) {
    settings().bind(|| insta::assert_snapshot!(name, text));
}

/// Output of a run at a pipe, with its exit code.
fn report(shown: &Shown) -> String {
    let mut text = format!("exit code {}\n", shown.code.unwrap_or(-1));
    for (name, said) in [("stdout", &shown.stdout), ("stderr", &shown.stderr)] {
        if !said.is_empty() {
            let _ = write!(text, "--- {name}\n{}\n", said.trim_end());
        }
    }
    text
}

/// Returns the names of the commands in a help text, which come before its options.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().take_while(|it| *it != "Options:");
    let names = lines.filter_map(|it| {
        let line = it.strip_prefix("  ")?;
        let is_named = line.starts_with(|it: char| it.is_ascii_lowercase());
        line.split_whitespace().next().filter(|_| is_named)
    });
    names
        .filter(|it| *it != "help")
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn help_of_every_command() {
    let env = TestEnv::new();
    let mut text = String::new();
    let mut open = vec![Vec::<String>::new()];
    while let Some(words) = open.pop() {
        let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
        args.push("--help");
        let shown = env.run(&args).await;
        assert_eq!(shown.code, Some(0), "{args:?} {shown:?}");
        let below = commands(&shown.stdout).into_iter().rev();
        open.extend(below.map(|name| [&words[..], &[name]].concat()));
        let _ = write!(
            text,
            "$ rondo {}\n{}\n\n",
            args.join(" "),
            shown.stdout.trim_end()
        );
    }
    check("help", &text);
}

#[tokio::test]
async fn errors_of_bad_input() {
    let lines: [&[&str]; 26] = [
        &["ask", "-m", "nothing", "x"],
        &["ask", "-m", "nobody/model", "x"],
        &["ask", "-m", "openai/test", "x"],
        &["ask", "-m", "openai/test", "--base-url", "ftp://x", "x"],
        &[
            "ask",
            "-m",
            "openai/test",
            "--base-url",
            "http://127.0.0.1:9",
            "x",
        ],
        &["ask", "--max-steps", "none", "x"],
        &["ask", "--deadline", "soon", "x"],
        &["ask", "--approval", "maybe", "x"],
        &["ask", "--profile", "nope", "x"],
        &["ask", "-C", "nowhere", "x"],
        &["ask", "--add-dir", "nowhere", "x"],
        &["ask", "--output-schema", "nowhere.json", "x"],
        &["ask", "-m", "openai/test", "look at @nowhere.txt"],
        &["ask", "--no-such-flag", "x"],
        &["aks", "x"],
        &["comfig"],
        &["config", "get", "modle"],
        &["config", "set", "modle", "x"],
        &["config", "set", "max_steps", "many"],
        &["session", "show", "s-nope"],
        &["session", "fork", "latest"],
        &["resume"],
        &["replay", "nowhere.jsonl"],
        &["answer", "latest", "yes"],
        &["mcp", "login", "nobody"],
        &["run", "nowhere.lua"],
    ];
    let env = TestEnv::new().var("OPENAI_API_KEY", "");
    let mut text = String::new();
    for line in lines {
        let shown = env.run(line).await;
        let _ = write!(text, "$ rondo {}\n{}\n", line.join(" "), report(&shown));
    }
    check("errors", &text);
}

#[tokio::test]
async fn errors_of_bad_files() {
    let files = [
        ("config", "model = 3\n"),
        ("config", "modle = \"x\"\n"),
        ("config", "max_steps = 0\n"),
        ("config", "[[\n"),
        ("policy", "[[rule]]\ntool = \"exec\"\n"),
        ("policy", "[[rule]]\ndecision = \"perhaps\"\n"),
        ("policy", "nothing = 1\n"),
    ];
    let mut text = String::new();
    for (file, content) in files {
        let env = TestEnv::new();
        match file {
            "config" => env.user_config(content),
            _ => env.user_policy(content),
        };
        let server = serve(vec![says("Hello.")]).await;
        let shown = env.ask(&server, &["hello"]).await;
        let _ = write!(
            text,
            "# {file}.toml: {}\n{}\n",
            content.trim_end(),
            report(&shown)
        );
    }
    check("bad_files", &text);
}

/// An ordinary turn: what it is called, what the model says, and how `ask` is called.
struct Scene {
    name: &'static str,
    replies: Vec<ReplyScript>,
    args: &'static [&'static str],
}

impl Scene {
    fn new(name: &'static str, replies: Vec<ReplyScript>, args: &'static [&'static str]) -> Self {
        Self {
            name,
            replies,
            args,
        }
    }

    /// Returns the options and the question.
    fn split(&self) -> (&'static [&'static str], &'static str) {
        let (question, options) = self.args.split_last().unwrap();
        (options, question)
    }

    /// Returns whether a person is asked on the way.
    fn asks(&self) -> bool {
        self.name == ASKS
    }
}

const ASKS: &str = "a call that needs approval";

/// `true` for arguments of a prompt: `ask` alone knows the other options.
fn is_of_prompts(scene: &Scene) -> bool {
    let (options, _) = scene.split();
    options.iter().all(|it| *it == "--yolo")
}

fn exec(command: &str) -> ReplyScript {
    calls("exec", &json!({"command": command}))
}

fn write() -> ReplyScript {
    let arguments = json!({"path": "made.txt", "content": "one\ntwo\n"});
    calls("write_file", &arguments)
}

/// Turns that a person sees every day.
fn scenes() -> Vec<Scene> {
    let edit = json!({"path": "notes.md", "old_string": "first", "new_string": "second"});
    let pair = ReplyScript::calls([
        CallScript::new("call_1", "read_file", &json!({"path": "notes.md"})),
        CallScript::new("call_2", "list_files", &json!({})),
    ]);
    vec![
        Scene::new(
            "an answer in Markdown",
            vec![says("# Sum\n\nIt is **four**:\n\n- two\n- and two\n")],
            &["2+2?"],
        ),
        Scene::new(
            "words before a call and after it",
            vec![
                exec("echo one; echo two").saying("Let me look into that directory for you."),
                says("It is done."),
            ],
            &["--yolo", "look"],
        ),
        Scene::new(
            "a command that fails",
            vec![exec("echo why >&2; exit 3"), says("It failed.")],
            &["--yolo", "try"],
        ),
        Scene::new(
            "two calls in one reply",
            vec![pair.usage(10, 5), says("Both read.")],
            &["read"],
        ),
        Scene::new(
            ASKS,
            vec![write().saying("I write it down for you."), says("Written.")],
            &["write"],
        ),
        Scene::new(
            "a change of a file",
            vec![calls("edit_file", &edit), says("Changed.")],
            &["--yolo", "change"],
        ),
        Scene::new(
            "a tool that is not there",
            vec![calls("fly", &json!({})), says("I cannot.")],
            &["fly"],
        ),
        Scene::new(
            "arguments that do not fit",
            vec![calls("read_file", &json!({"file": 1})), says("I see.")],
            &["read"],
        ),
        Scene::new(
            "the limit of steps",
            vec![exec("true"), exec("true"), says("So far: nothing.")],
            &["--yolo", "--max-steps", "2", "go"],
        ),
        Scene::new(
            "an answer that does not fit its schema",
            vec![
                says("no JSON"),
                says("none either"),
                says("still none"),
                says("none"),
            ],
            &["--output-schema", "schema.json", "answer"],
        ),
    ]
}

fn prepared() -> TestEnv {
    let env = TestEnv::new();
    env.write("notes.md", "the first line\nand another\n");
    env.write("schema.json", r#"{"type":"object","required":["a"]}"#);
    env
}

#[tokio::test]
async fn turns_at_a_pipe() {
    let mut text = String::new();
    for scene in scenes() {
        let server = serve(scene.replies).await;
        let shown = prepared().ask(&server, scene.args).await;
        let _ = write!(text, "# {}\n{}\n", scene.name, report(&shown));
    }
    for (name, response) in [
        (
            "a key that is refused",
            openai::error(401, "invalid_api_key", "Incorrect API key provided"),
        ),
        (
            "a model that is not there",
            openai::error(404, "model_not_found", "The model `test` does not exist"),
        ),
        ("an answer in HTML", faults::html_error(403)),
    ] {
        let server = Server::start(Script::from(vec![response])).await;
        let shown = prepared().ask(&server, &["hello"]).await;
        let _ = write!(text, "# {name}\n{}\n", report(&shown));
    }
    check("turns_at_a_pipe", &text);
}

#[tokio::test]
async fn turns_as_json_events() {
    let server = serve(vec![exec("echo one").saying("Look:"), says("Done.")]).await;
    let shown = prepared()
        .ask(&server, &["--yolo", "--output-format", "stream-json", "go"])
        .await;
    let mut settings = settings();
    settings.add_filter(r#""(\w*hash)":"[0-9a-f]+""#, r#""$1":"[HASH]""#);
    settings.add_filter(r#""(\w*_ms|\w*time\w*|at|pid)":[\d.]+"#, r#""$1":0"#);
    settings.bind(|| insta::assert_snapshot!("turns_as_json_events", report(&shown)));
}

#[tokio::test]
async fn turns_at_a_terminal() {
    let mut text = String::new();
    for scene in scenes() {
        let asks = scene.asks();
        let server = serve(scene.replies).await;
        let url = server.url("/v1");
        let env = prepared();
        let own = ["ask", "-m", "openai/test", "--base-url", &url];
        let mut person = Person::start(&env, &[&own[..], scene.args].concat());
        if asks {
            person.sees("Run it? y/n").await;
            person.press("y\r").await;
        }
        let code = person.code().await.unwrap_or(-1);
        let shown = person.all();
        let _ = write!(
            text,
            "# {}\nexit code {code}\n{}\n\n",
            scene.name,
            shown.trim_end()
        );
    }
    check("turns_at_a_terminal", &text);
}

#[tokio::test]
async fn turns_at_the_line_prompt() {
    let mut text = String::new();
    for scene in scenes().into_iter().filter(is_of_prompts) {
        let ((options, question), asks) = (scene.split(), scene.asks());
        let server = serve(scene.replies).await;
        let env = prepared();
        let mut person = start(&env, &server, options);
        person.prompt("agent").await;
        person.enter(question).await;
        if asks {
            person.sees("Run it? y/n").await;
            person.press("y\r").await;
        }
        person.prompt("agent").await;
        person.press(CTRL_D).await;
        person.code().await;
        let shown = person.all();
        let _ = write!(text, "# {}\n{}\n\n", scene.name, shown.trim_end());
    }
    check("turns_at_the_line_prompt", &text);
}

#[tokio::test]
async fn turns_on_the_screen() {
    let mut text = String::new();
    for scene in scenes().into_iter().filter(is_of_prompts) {
        let ((options, question), asks) = (scene.split(), scene.asks());
        // The line below a turn that has ended.
        let end = match scene.replies.len() {
            1 => "1 step ·",
            _ => "2 steps ·",
        };
        let server = serve(scene.replies).await;
        let env = prepared();
        let mut person = open(&env, &server, options).await;
        person.press(question).await;
        person.press(ENTER).await;
        if asks {
            person.shows("may this run?").await;
            person.press(REVIEW).await;
            person.shows("y allow").await;
            let _ = write!(text, "# {}, asked\n{}\n", scene.name, on_screen(&person));
            person.press("y").await;
        }
        // The line below a turn that has ended.
        person.shows(end).await;
        let _ = write!(text, "# {}\n{}\n", scene.name, on_screen(&person));
        leave(person).await;
    }
    check("turns_on_the_screen", &text);
}

/// Turns that fail, and how often the provider is asked at least.
fn failures() -> Vec<(&'static str, Vec<Response>)> {
    let frames = openai::frames(&says("Some words of it."));
    let bad = Bytes::from("data: {oops: 1}\n\n");
    let unreadable = || faults::truncated(vec![bad.clone()]);
    vec![
        (
            "a key that is refused",
            vec![openai::error(
                401,
                "invalid_api_key",
                "Incorrect API key provided",
            )],
        ),
        (
            "a stream that is cut",
            vec![faults::cut_after(frames[..2].to_vec())],
        ),
        (
            "replies that cannot be read",
            (0..3).map(|_| unreadable()).collect(),
        ),
    ]
}

#[tokio::test]
async fn failures_at_a_terminal_and_at_both_prompts() {
    let mut text = String::new();
    for (name, responses) in failures() {
        let server = Server::start(Script::from(responses)).await;
        let url = server.url("/v1");
        let env = prepared();
        let args = ask_args(&url, &["hello"]);
        let mut person = Person::start(&env, &args);
        let code = person.code().await.unwrap_or(-1);
        let shown = person.all();
        let _ = write!(text, "# {name}\nexit code {code}\n{}\n\n", shown.trim_end());
    }
    for (name, responses) in failures() {
        let server = Server::start(Script::from(responses)).await;
        let env = prepared();
        let mut person = start(&env, &server, &[]);
        person.prompt("agent").await;
        person.enter("hello").await;
        person.prompt("agent").await;
        person.press(CTRL_D).await;
        person.code().await;
        let shown = person.all();
        let _ = write!(
            text,
            "# {name}, at the line prompt\n{}\n\n",
            shown.trim_end()
        );
    }
    for (name, responses) in failures() {
        let end = match responses.len() {
            1 => "1 step ·",
            _ => "3 steps ·",
        };
        let server = Server::start(Script::from(responses)).await;
        let env = prepared();
        let mut person = open(&env, &server, &[]).await;
        person.press("hello").await;
        person.press(ENTER).await;
        person.shows(end).await;
        let _ = write!(text, "# {name}, on the screen\n{}\n", on_screen(&person));
        leave(person).await;
    }
    check("failures", &text);
}

/// Text on the screen, without the empty rows at its top.
fn on_screen(person: &Person) -> String {
    let screen = person.screen();
    let rows = screen.lines().map(str::trim_end);
    let rows = rows.skip_while(|row| row.is_empty());
    rows.flat_map(|row| [row, "\n"]).collect()
}

#[tokio::test]
async fn a_session_afterwards() {
    let mut text = String::new();
    let replies = vec![
        exec("echo one").saying("Look:"),
        says("Done."),
        says("Again."),
    ];
    let server = serve(replies).await;
    let env = prepared();
    assert_eq!(env.ask(&server, &["--yolo", "go"]).await.code, Some(0));
    assert_eq!(env.ask(&server, &["-c", "and again"]).await.code, Some(0));
    for line in [
        &["session", "list"][..],
        &["session", "show"],
        &["session", "fsck"],
        &["usage"],
        &["replay", "latest"],
        &["trust", "--list"],
        &["policy", "sandbox", "--list"],
        &["profiles", "list"],
        &["config", "list"],
    ] {
        let shown = env.run(line).await;
        let _ = write!(text, "$ rondo {}\n{}\n", line.join(" "), report(&shown));
    }
    let mut settings = settings();
    settings.add_filter(r"(\S) {2,}", "$1  ");
    settings.bind(|| insta::assert_snapshot!("a_session_afterwards", text));
}
