//! Subagents and agent files, as a user runs them; and a turn with three children whose process is killed.

use crate::harness::{Shown, TestEnv, ask_args, calls, says, serve};
use rondo_core::ports::{RecordBody, Seq};
use rondo_journal::{Entry, Options, Store};
use rondo_testkit::{CallScript, Recorded, ReplyScript, Response, Script, Server, openai};
use rondo_types::{CallId, SessionId, ToolOutcome};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// First question of a session, and the number of results of calls it has.
fn asked(request: &Recorded) -> (String, usize) {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap().clone();
    let first = messages.iter().find(|it| it["role"] == "user").unwrap();
    let results = messages.iter().filter(|it| it["role"] == "tool").count();
    let text = first["content"].as_str().map(str::to_owned);
    let text = text.unwrap_or_else(|| first["content"].to_string());
    (text, results)
}

fn calling(calls: &[(&str, Value)]) -> Response {
    let calls = calls.iter().enumerate();
    let calls = calls.map(|(n, (name, args))| CallScript::new(&format!("c{n}"), name, args));
    openai::streamed(&ReplyScript::calls(calls.collect::<Vec<_>>()).usage(10, 5))
}

/// A parent that has three things done: two that leave a line in a file, and one that looks.
fn answer(request: &Recorded) -> Response {
    let (task, results) = asked(request);
    match (task.as_str(), results) {
        ("go", 0) => calling(&[
            ("subagent", json!({"task": "one", "tools": ["exec"]})),
            ("subagent", json!({"task": "two", "tools": ["exec"]})),
            (
                "subagent",
                json!({"task": "three", "tools": ["list_files"]}),
            ),
        ]),
        ("go", _) => openai::streamed(&says("All done.")),
        ("three", 0) => calling(&[("list_files", json!({"path": "."}))]),
        (task, 0) => {
            // The process is killed right behind the effect, if a test wants that.
            let command = format!(
                "echo {task} >> effects; if [ -e kill-{task} ]; then rm kill-{task}; kill -9 $(cat agent); fi"
            );
            calling(&[("exec", json!({"command": command}))])
        }
        (task, _) => openai::streamed(&says(&format!("Did {task}."))),
    }
}

/// A process that is killed at its n-th request, and what continues after it.
struct Killed {
    env: TestEnv,
    server: Server,
    pid: Arc<Mutex<Option<u32>>>,
}

impl Killed {
    async fn at(request: usize) -> Self {
        let pid = Arc::new(Mutex::new(None));
        let (victim, seen) = (Arc::clone(&pid), AtomicUsize::new(0));
        let script = Script::answering(move |it| {
            if seen.fetch_add(1, Ordering::SeqCst) + 1 == request {
                let pid: Option<u32> = victim.lock().unwrap().take();
                if let Some(pid) = pid.and_then(|it| Pid::from_raw(i32::try_from(it).unwrap())) {
                    kill_process(pid, Signal::KILL).unwrap();
                }
            }
            answer(it)
        });
        Self {
            env: TestEnv::new(),
            server: Server::start(script).await,
            pid,
        }
    }

    async fn first_life(&self) -> Shown {
        let url = self.server.url("/v1");
        let args = ask_args(&url, &["--yolo", "go"]);
        let child = self.env.command(&args).spawn().unwrap();
        // The server is a task of this thread: it is asked nothing before the process is known.
        *self.pid.lock().unwrap() = child.id();
        self.env.write("agent", child.id().unwrap().to_string());
        self.env.wait(child).await
    }

    async fn next_life(&self) -> Shown {
        let url = self.server.url("/v1");
        let args = ["resume", "latest", "--base-url", &url, "--yolo"];
        self.env.run(&args).await
    }

    fn check(&self, what: &str) {
        let effects = std::fs::read_to_string(self.env.project().join("effects")).unwrap();
        let mut effects: Vec<&str> = effects.lines().collect();
        effects.sort_unstable();
        assert_eq!(effects, ["one", "two"], "{what}");
        let dir = self.env.home().join(".local/share/rondo/sessions");
        let store = Store::open(&dir, Options::default()).unwrap();
        let parents = store.sessions(10).unwrap();
        assert_eq!(parents.len(), 1, "{what}");
        let parent = parents[0].id.clone();
        let children = (0..3).map(|n| parent.child(&CallId::generated(1, 1, n)).unwrap());
        let children: Vec<SessionId> = children.collect();
        let listed = store.children(&parent, 10).unwrap();
        let listed: Vec<SessionId> = listed.into_iter().map(|it| it.id).collect();
        assert_eq!(listed, children, "{what}");
        let mut spent = 0;
        for child in &children {
            spent += replies(&store, child, what) * 15;
        }
        replies(&store, &parent, what);
        let entries = store.read(&parent, Seq(1), usize::MAX).unwrap();
        let used = entries
            .into_iter()
            .filter_map(|entry| match entry.into_record()?.body {
                RecordBody::ToolFinished {
                    outcome: ToolOutcome::Ok(output),
                    ..
                } => Some(output.used.unwrap().tokens),
                _ => None,
            });
        let used: Vec<u64> = used.collect();
        assert_eq!((used.len(), used.iter().sum::<u64>()), (3, spent), "{what}");
    }
}

/// Returns how many replies a session has; none was asked for again, and its turn ended once.
fn replies(store: &Store, session: &SessionId, what: &str) -> u64 {
    let entries = store.read(session, Seq(1), usize::MAX).unwrap();
    let (mut replied, mut ends) = (Vec::new(), 0);
    for record in entries.into_iter().filter_map(Entry::into_record) {
        match record.body {
            RecordBody::ModelRequested { .. } => {
                assert!(!replied.contains(&record.step), "{what}: {session}");
            }
            RecordBody::ModelReplied { .. } => replied.push(record.step),
            RecordBody::Final { .. } => ends += 1,
            _ => {}
        }
    }
    assert_eq!(ends, 1, "{what}: {session}");
    replied.len().try_into().unwrap()
}

#[tokio::test]
async fn a_turn_with_three_children_that_is_killed_at_any_request_does_each_thing_once() {
    // Two of the parent, two of each child; the last is past the end, so that nothing is killed.
    for request in 1..=9 {
        let what = format!("killed at request {request}");
        let killed = Killed::at(request).await;
        let first = killed.first_life().await;
        let last = match request {
            9 => first,
            _ => {
                assert_eq!(first.code, None, "{what}: {first:?}");
                killed.next_life().await
            }
        };
        assert_eq!(last.code, Some(0), "{what}: {last:?}");
        assert!(last.stdout.contains("All done."), "{what}: {last:?}");
        killed.check(&what);
    }
}

#[tokio::test]
async fn children_that_had_their_effect_when_their_process_was_killed_do_not_repeat_it() {
    for task in ["one", "two"] {
        let killed = Killed::at(0).await;
        killed.env.write(&format!("kill-{task}"), "");
        let first = killed.first_life().await;
        assert_eq!(first.code, None, "{task}: {first:?}");
        let last = killed.next_life().await;
        assert_eq!(last.code, Some(0), "{task}: {last:?}");
        killed.check(task);
    }
}

#[tokio::test]
async fn a_childs_question_is_answered_on_its_parents_session_and_both_are_shown() {
    let env = TestEnv::new();
    let script = Script::answering(|request| match asked(request) {
        (task, 0) if task == "go" => calling(&[("subagent", json!({"task": "write it"}))]),
        (task, _) if task == "go" => openai::streamed(&says("Delegated.")),
        (_, 0) => calling(&[("write_file", json!({"path": "made.txt", "content": "x"}))]),
        _ => openai::streamed(&says("Written.")),
    });
    let server = Server::start(script).await;
    let shown = env.ask(&server, &["--approval", "park", "go"]).await;
    assert_eq!(shown.code, Some(47), "{shown:?}");
    assert!(
        shown.stderr.contains("`write_file` wants to run"),
        "{shown:?}"
    );
    allowed(&env, &server, "Delegated.\n").await;
    assert!(env.project().join("made.txt").exists());
    let list = env.run(&["session", "list", "--json"]).await;
    let list = list.lines();
    assert_eq!(list.len(), 2);
    assert_eq!(list[1]["child_of"], list[0]["id"]);
    assert_eq!(list[1]["title"], "write it");
    let text = env.run(&["session", "list"]).await;
    assert!(text.stdout.contains("\n└ s-"), "{text:?}");
    let story = env.run(&["session", "show"]).await;
    assert!(story.stdout.contains("## Subagents\n\n- `s-"), "{story:?}");
    let usage = env.run(&["usage", "--by", "session", "--json"]).await;
    let usage = usage.lines();
    assert_eq!(usage.len(), 1, "{usage:?}");
    assert_eq!(
        (&usage[0]["requests"], &usage[0]["input"]),
        (&json!(4), &json!(40))
    );
    let id = list[0]["id"].as_str().unwrap();
    assert_eq!(env.run(&["session", "rm", "--yes", id]).await.code, Some(0));
    assert_eq!(env.run(&["session", "list", "--json"]).await.stdout, "");
}

#[tokio::test]
async fn an_agent_file_gives_ask_its_prompt_and_tools() {
    let env = TestEnv::new();
    let file = "---\nname: looker\ndescription: Looks.\ntools: Read, Bash(git *)\nmodel: opus\n---\nYou only look.";
    env.write(".claude/agents/looker.md", file);
    let server = serve(vec![says("Seen.")]).await;
    let shown = env.ask(&server, &["--agent", "looker", "look"]).await;
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (Some(0), "Seen.\n"),
        "{shown:?}"
    );
    for note in ["`Bash(git *)` is left out", "its model `opus` is ignored"] {
        assert!(shown.stderr.contains(note), "{shown:?}");
    }
    let body = server.requests()[0].json();
    let tools = body["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|it| &it["function"]["name"]).collect();
    assert_eq!(names, ["read_file"]);
    let system = body["messages"][0]["content"].to_string();
    assert!(system.contains("You only look."), "{system}");
    let shown = env.ask(&server, &["--agent", "nobody", "look"]).await;
    assert_eq!(shown.code, Some(52), "{shown:?}");
    assert!(shown.stderr.contains("the agents are: looker"), "{shown:?}");
}

#[tokio::test]
async fn the_to_do_list_is_an_event_and_is_shown_with_the_session() {
    let env = TestEnv::new();
    let items = json!({"items": [
        {"text": "read it", "status": "done"},
        {"text": "write it", "status": "pending"},
    ]});
    let server = serve(vec![calls("todo", &items), says("Planned.")]).await;
    let shown = env
        .ask(&server, &["--output-format", "stream-json", "plan"])
        .await;
    let told = shown.lines();
    let changed = told.iter().find(|it| it["type"] == "todo_changed").unwrap();
    assert_eq!(changed["items"], items["items"]);
    let story = env.run(&["session", "show"]).await;
    assert!(
        story
            .stdout
            .ends_with("## To do\n\n- [x] read it\n- [ ] write it\n"),
        "{story:?}"
    );
    let data = env.run(&["session", "show", "--format", "json"]).await;
    assert_eq!(data.lines()[0]["todo"], items["items"]);
}

/// Answers the question of the latest session with yes, and compares what its turn says then.
async fn allowed(env: &TestEnv, server: &Server, said: &str) {
    let url = server.url("/v1");
    let shown = env
        .run(&["answer", "--base-url", &url, "latest", "y"])
        .await;
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), said));
}

#[tokio::test]
async fn a_spent_budget_parks_the_turn_and_says_which() {
    let env = TestEnv::new();
    let server = serve(vec![says("Hello."), says("Hello again.")]).await;
    let ask = async |words: &[&str]| env.ask(&server, words).await;
    // What was used before there was a budget counts.
    assert_eq!(ask(&["hi"]).await.code, Some(0));
    env.user_config("max_daily_tokens = 20");
    let shown = ask(&["hi"]).await;
    assert_eq!(shown.code, Some(47), "{shown:?}");
    let spent = "the budget of 20 tokens for today is spent";
    assert!(shown.stderr.contains(spent), "{shown:?}");
    assert_eq!(server.requests().len(), 1);
    allowed(&env, &server, "Hello again.\n").await;
    // In money, the price must be known.
    let shown = ask(&["--max-daily-usd", "1", "hi"]).await;
    assert_eq!(shown.code, Some(52), "{shown:?}");
    assert!(
        shown
            .stderr
            .contains("the price of `openai/test` is not known"),
        "{shown:?}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_subagent_runs_unasked_since_it_only_looks_is_in_the_read_only_sandbox() {
    if !rondo_runtime::confined::is_full() {
        return;
    }
    let script = Script::answering(|request| match asked(request) {
        (task, 0) if task == "go" => {
            calling(&[("subagent", json!({"task": "one", "tools": ["exec"]}))])
        }
        (task, 0) if task == "one" => {
            let command = "sed -n 'w made.txt' text.txt";
            calling(&[("exec", json!({ "command": command }))])
        }
        (task, _) => openai::streamed(&says(&format!("Did {task}."))),
    });
    let server = Server::start(script).await;
    let env = TestEnv::new();
    env.write("text.txt", "a");
    let shown = env.ask(&server, &["go"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!env.project().join("made.txt").exists(), "{shown:?}");
}
