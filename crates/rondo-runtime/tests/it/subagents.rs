//! Subagents: sessions that calls start, with their events, questions, budgets and ends.

use crate::service::{World, approve, event, is_parked, is_result, says, until};
use rondo_core::ports::{RecordBody, Seq};
use rondo_core::session::Delivery;
use rondo_runtime::Layer;
use rondo_runtime::service::{Cursor, SessionHandle, SessionService, Update};
use rondo_runtime::subagent::AT_ONCE_MAX;
use rondo_testkit::{CallScript, Gate, Recorded, ReplyScript, Response, Script, Step, openai};
use rondo_types::{EventBody, Message, SessionId, Spend, StopReason, ToolErrorCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Whom a request is from: what its session was asked first, and how many results of calls it has.
struct Asked {
    task: String,
    results: Vec<String>,
    tools: BTreeSet<String>,
}

impl Asked {
    fn of(request: &Recorded) -> Self {
        let body = request.json();
        let messages = body.get("messages").and_then(Value::as_array).unwrap();
        let of = |role: &str| -> Vec<String> {
            let messages = messages.iter().filter(|it| it["role"] == role);
            messages.map(|it| it["content"].to_string()).collect()
        };
        let tools = body.get("tools").and_then(Value::as_array);
        let tools = tools.into_iter().flatten();
        let tools = tools.map(|it| {
            let name = it.pointer("/function/name").and_then(Value::as_str);
            name.unwrap().to_owned()
        });
        Self {
            task: of("user").remove(0),
            results: of("tool"),
            tools: tools.collect(),
        }
    }

    fn is(&self, task: &str) -> bool {
        self.task.contains(task)
    }
}

fn script(answer: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Script {
    Script::answering(move |request| answer(&Asked::of(request)))
}

fn text(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]).usage(100, 10))
}

/// A reply that does not begin before the gate opens.
fn held(text: &str, gate: &Gate) -> Response {
    let reply = ReplyScript::text([text]).usage(100, 10);
    let response = Response::sse(Vec::<Vec<u8>>::new()).step(Step::Gate(gate.clone()));
    let frames = openai::frames(&reply).into_iter();
    frames.fold(response, Response::send)
}

fn calls(calls: &[(&str, Value)]) -> Response {
    let calls = calls.iter().enumerate();
    let calls =
        calls.map(|(n, (name, arguments))| CallScript::new(&format!("c{n}"), name, arguments));
    openai::streamed(&ReplyScript::calls(calls.collect::<Vec<_>>()).usage(100, 10))
}

fn task(task: &str) -> (&'static str, Value) {
    ("subagent", json!({"task": task, "tools": ["read_file"]}))
}

async fn ask(session: &SessionHandle, text: &str) {
    let message = Message::user(text);
    session.submit(message, Delivery::Queue).await.unwrap();
}

/// The ends of the calls in their order: the error's code, what the model reads, and what was used.
fn ends(updates: &[Update]) -> Vec<(Option<ToolErrorCode>, String, Option<Spend>)> {
    let events = updates.iter().filter_map(|it| event(&it.body));
    let ends = events.filter_map(|it| match it {
        EventBody::ToolCallFinished {
            id,
            code,
            result,
            used,
            ..
        } => Some((id.to_string(), (*code, result.to_string(), *used))),
        _ => None,
    });
    // They end in any order.
    let ends: BTreeMap<_, _> = ends.collect();
    ends.into_values().collect()
}

fn child(session: &SessionHandle, index: u32) -> SessionId {
    let call = rondo_types::CallId::generated(1, 1, index);
    session.id().child(&call).unwrap()
}

fn kinds(service: &SessionService, world: &World, session: &SessionId) -> Vec<String> {
    let _ = service;
    let dir = world.home.path().join("data/sessions");
    let store = rondo_journal::Store::open(&dir, rondo_journal::Options::default()).unwrap();
    let entries = store.read(session, Seq(1), usize::MAX).unwrap();
    entries.iter().map(rondo_journal::Entry::kind).collect()
}

#[tokio::test]
async fn three_children_that_read_work_at_once_and_their_parent_has_their_answers() {
    let (gate, begun) = (Gate::new(), AtomicUsize::new(0));
    let world = World::new(script(move |asked| match asked.task.contains("Find out") {
        true if asked.results.is_empty() => calls(&[task("one?"), task("two?"), task("three?")]),
        true => {
            assert_eq!(asked.results.len(), 3);
            text("All found.")
        }
        false => {
            assert_eq!(asked.tools, BTreeSet::from(["read_file".to_owned()]));
            // No reply comes before all three have asked.
            if begun.fetch_add(1, Ordering::SeqCst) == 2 {
                gate.open();
            }
            held(&format!("about {}", asked.task), &gate)
        }
    }))
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Find out").await;
    let told = until(&mut listener, is_result).await;
    assert!(told.iter().any(|it| says(&it.body, "All found.")));
    let ends = ends(&told);
    assert_eq!(ends.len(), 3);
    for ((code, result, used), word) in ends.iter().zip(["one?", "two?", "three?"]) {
        assert_eq!(*code, None, "{result}");
        assert!(
            result.contains(word) && result.contains("complete"),
            "{result}"
        );
        let expected = Spend {
            steps: 1,
            calls: 0,
            tokens: 110,
            cost: Some(rondo_types::NanoUsd(0)),
        };
        assert_eq!(*used, Some(expected));
    }
    let results = told.iter().filter_map(|it| match event(&it.body) {
        Some(EventBody::Result(result)) => result.delegated,
        _ => None,
    });
    assert_eq!(results.map(|it| it.steps).collect::<Vec<_>>(), [3]);
    // Their events came up while they worked, each with its own session.
    let of_children: BTreeSet<String> = told
        .iter()
        .filter_map(|it| match event(&it.body) {
            Some(EventBody::ChildEvent { event, .. })
                if matches!(event.body, EventBody::Result(_)) =>
            {
                Some(event.session.to_string())
            }
            _ => None,
        })
        .collect();
    let children = (0..3).map(|n| child(&session, n).to_string());
    assert_eq!(of_children, children.collect());
    service.close().await;
    for n in 0..3 {
        let kinds = kinds(&service, &world, &child(&session, n));
        assert_eq!(kinds.last().map(String::as_str), Some("final"));
    }
    // They are listed with their parent alone.
    assert_eq!(
        service.find("latest", world.options()).await.unwrap().id(),
        session.id()
    );
}

/// A model that has read such text may act on it, and so may its children.
#[tokio::test]
async fn a_child_of_a_turn_with_text_from_outside_holds_it_from_its_first_record_on() {
    for is_tainted in [false, true] {
        let world = World::new(script(|asked| match asked.is("Delegate") {
            true if asked.results.is_empty() => calls(&[task("go")]),
            _ => text("Done."),
        }))
        .await;
        let service = world.service();
        let session = service.new_session(world.options());
        let mut listener = session.subscribe(Cursor::START);
        let mut message = Message::user("Delegate");
        message.from_outside = is_tainted;
        session.submit(message, Delivery::Queue).await.unwrap();
        until(&mut listener, is_result).await;
        let child = child(&session, 0);
        let found = service.has_outside_text(&child).await.unwrap();
        assert_eq!(found, is_tainted);
    }
}

#[tokio::test]
async fn six_children_work_at_once_and_a_seventh_takes_its_turn() {
    let (gate, all_places) = (Gate::new(), Arc::new(Notify::new()));
    let begun = Arc::new(AtomicUsize::new(0));
    let (held_by, seen, taken) = (gate.clone(), Arc::clone(&begun), Arc::clone(&all_places));
    let names = ["1?", "2?", "3?", "4?", "5?", "6?", "7?"];
    let world = World::new(script(move |asked| match asked.is("Find out") {
        _ if asked.is("Something else") => text("Here."),
        true if asked.results.is_empty() => calls(&names.map(task)),
        true => text("All found."),
        false => {
            // No reply comes before six have asked; were there fewer places, none would ever come.
            if seen.fetch_add(1, Ordering::SeqCst) + 1 == AT_ONCE_MAX {
                taken.notify_one();
            }
            held(&format!("about {}", asked.task), &held_by)
        }
    }))
    .await;
    // A server on this machine is sent four requests at once, unless it is said to take more.
    let config = "[providers.localhost]\nmax_concurrent_requests = 16\n";
    std::fs::write(world.home.path().join("config.toml"), config).unwrap();
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Find out").await;
    all_places.notified().await;
    // A whole turn of another session takes longer than a child with a place would to ask.
    let other = service.new_session(world.options());
    let mut others = other.subscribe(Cursor::START);
    ask(&other, "Something else").await;
    until(&mut others, is_result).await;
    assert_eq!(begun.load(Ordering::SeqCst), AT_ONCE_MAX);
    gate.open();
    let told = until(&mut listener, is_result).await;
    let ends = ends(&told);
    assert_eq!((ends.len(), begun.load(Ordering::SeqCst)), (7, 7));
    for ((code, result, _), name) in ends.iter().zip(names) {
        assert_eq!(*code, None, "{result}");
        assert!(result.contains(name), "{result}");
    }
}

#[tokio::test]
async fn a_child_has_children_where_the_depth_is_raised_and_theirs_have_none() {
    let tools = |names: &[&str]| {
        let names = names.iter().map(|it| (*it).to_owned());
        names.collect::<BTreeSet<String>>()
    };
    let delegates = |what: &str| ("subagent", json!({"task": what}));
    let world = World::new(script(move |asked| {
        let has = asked.tools.contains("subagent");
        if asked.is("Top") {
            return match asked.results.first() {
                None => calls(&[delegates("Middle")]),
                Some(result) => text(&format!("top: {result}")),
            };
        }
        if asked.is("Middle") {
            assert!(has, "the depth is two");
            return match asked.results.first() {
                None => calls(&[delegates("Bottom")]),
                Some(result) => text(&format!("middle: {result}")),
            };
        }
        assert!(!has && asked.tools.is_superset(&tools(&["read_file"])));
        text("the bottom")
    }))
    .await;
    let flags = Layer {
        max_subagent_depth: Some(2),
        ..Layer::default()
    };
    let service = world.service_with(flags);
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Top").await;
    let told = until(&mut listener, is_result).await;
    let result = told.iter().find_map(|it| match event(&it.body) {
        Some(EventBody::Result(result)) => Some((result.text.clone(), result.delegated)),
        _ => None,
    });
    let (answer, delegated) = result.unwrap();
    let answer = format!("{answer:?}");
    assert!(
        answer.contains("top") && answer.contains("middle") && answer.contains("the bottom"),
        "{answer}"
    );
    // What the child of the child used is its parent's too: two steps and one.
    assert_eq!(delegated.map(|it| it.steps), Some(3));
    service.close().await;
    let bottom = child(&session, 0);
    let bottom = bottom
        .child(&rondo_types::CallId::generated(1, 1, 0))
        .unwrap();
    let kinds = kinds(&service, &world, &bottom);
    assert_eq!(kinds.last().map(String::as_str), Some("final"));
}

#[tokio::test]
async fn children_that_write_work_one_after_another() {
    let (open, overlaps) = (
        Arc::new(Mutex::new(BTreeSet::new())),
        Arc::new(AtomicUsize::new(0)),
    );
    let seen = Arc::clone(&overlaps);
    let world = World::new(script(move |asked| {
        if asked.is("Write both") {
            return match asked.results.is_empty() {
                true => {
                    let write =
                        |path: &str| ("subagent", json!({"task": path, "tools": ["write_file"]}));
                    calls(&[write("one.txt"), write("two.txt")])
                }
                false => text("Both."),
            };
        }
        let path = asked.task.trim_matches('"').to_owned();
        let mut open = open.lock().unwrap();
        match asked.results.is_empty() {
            true => {
                open.insert(path.clone());
                seen.fetch_add(open.len() - 1, Ordering::SeqCst);
                calls(&[("write_file", json!({"path": path, "content": "x"}))])
            }
            false => {
                open.remove(&path);
                text("Written.")
            }
        }
    }))
    .await;
    let flags = Layer {
        yolo: Some(true),
        ..Layer::default()
    };
    let service = world.service_with(flags);
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Write both").await;
    let told = until(&mut listener, is_result).await;
    for (path, (code, result, _)) in ["one.txt", "two.txt"].iter().zip(ends(&told)) {
        assert_eq!(code, None, "{result}");
        assert!(
            result.contains(&format!("[\\\"{path}\\\"]"))
                || result.contains(&format!("[\"{path}\"]")),
            "{result}"
        );
        assert!(world.project.path().join(path).exists());
    }
    assert_eq!(overlaps.load(Ordering::SeqCst), 0);
}

/// Has a session of its own delegate, and returns what it told until its result.
async fn delegated(world: &World) -> Vec<Update> {
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Delegate").await;
    until(&mut listener, is_result).await
}

#[tokio::test]
async fn an_error_of_the_api_is_a_failure_of_the_call() {
    let world = World::new(script(|asked| match asked.is("Delegate") {
        true if asked.results.is_empty() => calls(&[task("go")]),
        true => text("It failed."),
        false => openai::error(401, "invalid_request_error", "no such key"),
    }))
    .await;
    let told = delegated(&world).await;
    let (code, result, used) = ends(&told).remove(0);
    assert_eq!(code, Some(ToolErrorCode::Failed));
    assert!(result.contains("no such key"), "{result}");
    assert_eq!(used.unwrap().steps, 1);
}

#[tokio::test]
async fn what_is_no_task_or_no_tool_of_the_parent_starts_nothing() {
    let world = World::new(script(|asked| match asked.results.is_empty() {
        true => calls(&[
            ("subagent", json!({"task": " "})),
            (
                "subagent",
                json!({"task": "x", "tools": ["read_file", "format_disk"]}),
            ),
            ("subagent", json!({"task": "x", "tools": ["subagent"]})),
            ("subagent", json!({"task": "x", "budget": {"usd": -1}})),
        ]),
        false => text("None."),
    }))
    .await;
    let told = delegated(&world).await;
    let ends = ends(&told);
    assert_eq!(ends.len(), 4);
    for (code, result, _) in &ends {
        assert_eq!(*code, Some(ToolErrorCode::InvalidArgs), "{result}");
    }
    assert!(ends[1].1.contains("format_disk"), "{ends:?}");
    assert_eq!(world.server.requests().len(), 2);
}

#[tokio::test]
async fn a_childs_budget_bounds_it_and_an_answer_at_the_bound_says_so() {
    let world = World::new(script(|asked| {
        if asked.is("Delegate") {
            return match asked.results.is_empty() {
                true => calls(&[("subagent", json!({"task": "look", "budget": {"steps": 2}}))]),
                false => text("Done."),
            };
        }
        match asked.tools.is_empty() {
            true => text("As far as I came."),
            false => calls(&[("list_files", json!({"path": "."}))]),
        }
    }))
    .await;
    let told = delegated(&world).await;
    let (code, result, used) = ends(&told).remove(0);
    assert_eq!(code, None, "{result}");
    for part in ["max_steps", "incomplete", "As far as I came."] {
        assert!(result.contains(part), "{result}");
    }
    assert_eq!(used.unwrap().steps, 2);
}

#[tokio::test]
async fn a_childs_question_parks_its_parent_whose_answer_reaches_the_child() {
    let world = World::new(script(|asked| {
        if asked.is("Delegate") {
            return match asked.results.is_empty() {
                true => calls(&[("subagent", json!({"task": "write"}))]),
                false => text("Delegated."),
            };
        }
        match asked.results.is_empty() {
            true => calls(&[("write_file", json!({"path": "made.txt", "content": "x"}))]),
            false => text(&format!("Written: {}", asked.results[0])),
        }
    }))
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Delegate").await;
    until(&mut listener, is_parked).await;
    let question = session.questions().await.unwrap().remove(0);
    assert_eq!(question.child, Some(child(&session, 0)));
    assert!(question.prompt.contains("write_file"), "{question:?}");
    assert!(!world.project.path().join("made.txt").exists());
    // Another process answers.
    service.close().await;
    let other = world.service();
    let session = other.session(session.id().clone(), world.options());
    let mut listener = session.subscribe(Cursor::START);
    session.answer(approve(&question)).await.unwrap();
    let told = until(&mut listener, is_result).await;
    let (code, result, used) = ends(&told).remove(0);
    assert_eq!(code, None, "{result}");
    assert!(result.contains("made.txt"), "{result}");
    // Both of its steps, though another process took the first.
    assert_eq!(used.unwrap().steps, 2);
    assert!(world.project.path().join("made.txt").exists());
    assert_eq!(world.server.requests().len(), 4);
    other.close().await;
    let kinds = kinds(&other, &world, &child(&session, 0));
    assert_eq!(kinds.iter().filter(|it| *it == "answered").count(), 1);
}

#[tokio::test]
async fn stopping_the_parent_stops_its_children() {
    let gate = Gate::new();
    let world = World::new(script(move |asked| match asked.is("Delegate") {
        true => calls(&[task("wait")]),
        false => crate::service::gated(&["never", "comes"], &gate),
    }))
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Delegate").await;
    let is_under_way = |body: &rondo_runtime::service::UpdateBody| {
        matches!(event(body), Some(EventBody::ChildEvent { event, .. })
            if matches!(event.body, EventBody::StepStarted { .. }))
    };
    until(&mut listener, is_under_way).await;
    session.cancel().await.unwrap();
    let told = until(&mut listener, is_result).await;
    let (code, result, _) = ends(&told).remove(0);
    assert_eq!(code, Some(ToolErrorCode::Cancelled), "{result}");
    service.close().await;
    let dir = world.home.path().join("data/sessions");
    let store = rondo_journal::Store::open(&dir, rondo_journal::Options::default()).unwrap();
    let entries = store.read(&child(&session, 0), Seq(1), usize::MAX).unwrap();
    let last = entries
        .into_iter()
        .filter_map(rondo_journal::Entry::into_record)
        .last();
    let RecordBody::Final { stop_reason, .. } = last.unwrap().body else {
        panic!()
    };
    assert_eq!(stop_reason, StopReason::Cancelled);
}

#[tokio::test]
async fn the_agents_list_is_told_of_and_is_the_sessions() {
    let world = World::new(script(|asked| match asked.results.len() {
        0 => calls(&[(
            "todo",
            json!({"items": [{"text": "read", "status": "done"}, {"text": "write", "status": "in_progress"}]}),
        )]),
        1 => calls(&[("todo", json!({}))]),
        _ => text(&asked.results[1]),
    }))
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Plan").await;
    let told = until(&mut listener, is_result).await;
    let lists = told.iter().filter_map(|it| match event(&it.body) {
        Some(EventBody::TodoChanged { items }) => Some(items.len()),
        _ => None,
    });
    assert_eq!(lists.collect::<Vec<_>>(), [2]);
    assert!(told.iter().any(|it| says(&it.body, "[>] write")));
}

#[tokio::test]
async fn an_agent_file_gives_a_child_its_prompt_and_narrows_its_tools() {
    let world = World::new(Script::answering(|request| {
        let asked = Asked::of(request);
        if asked.is("Delegate") {
            return match asked.results.len() {
                0 => {
                    assert!(
                        request
                            .json()
                            .to_string()
                            .contains("- looker: Looks at code.")
                    );
                    calls(&[
                        ("subagent", json!({"task": "look", "agent": "looker"})),
                        ("subagent", json!({"task": "look", "agent": "nobody"})),
                    ])
                }
                _ => text("Done."),
            };
        }
        let system = request.json()["messages"][0]["content"].to_string();
        assert!(system.contains("You look at code."), "{system}");
        assert_eq!(asked.tools, BTreeSet::from(["read_file".to_owned()]));
        text("Seen.")
    }))
    .await;
    let folder = world.project.path().join(".claude/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let file = "---\nname: looker\ndescription: Looks at code.\ntools: Read, WebSearch\nmodel: evil/model\n---\nYou look at code.";
    std::fs::write(folder.join("looker.md"), file).unwrap();
    let told = delegated(&world).await;
    let ends = ends(&told);
    assert!(
        ends[0].0.is_none() && ends[0].1.contains("Seen."),
        "{ends:?}"
    );
    assert_eq!(ends[1].0, Some(ToolErrorCode::InvalidArgs));
    assert!(ends[1].1.contains("the agents are: looker"), "{ends:?}");
}

#[tokio::test]
async fn a_budget_of_the_session_counts_its_children_and_another_process_sees_it() {
    let world = World::new(script(|asked| {
        if asked.is("Delegate") {
            return match asked.results.is_empty() {
                true => calls(&[task("look")]),
                false => text("Done."),
            };
        }
        text("Looked.")
    }))
    .await;
    let flags = |session, daily| Layer {
        max_session_tokens: session,
        max_daily_tokens: daily,
        ..Layer::default()
    };
    let service = world.service_with(flags(Some(100_000), None));
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Delegate").await;
    until(&mut listener, is_result).await;
    service.close().await;
    // Three requests of 110 tokens each, that of the child included.
    let dir = world.home.path().join("data/sessions");
    let store = rondo_journal::Store::open(&dir, rondo_journal::Options::default()).unwrap();
    let place = rondo_journal::BudgetPlace {
        root: session.id().clone(),
        project: String::new(),
        day: 0,
    };
    let used = store.committed(rondo_journal::BudgetScope::Session, place);
    assert_eq!(used.await.unwrap().tokens, 330);

    let other = world.service_with(flags(None, Some(331)));
    let session = other.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Hello").await;
    until(&mut listener, is_parked).await;
    assert_eq!(world.server.requests().len(), 3);
    let question = session.questions().await.unwrap().remove(0);
    assert!(
        question
            .prompt
            .contains("the budget of 331 tokens for today is spent"),
        "{question:?}"
    );
    session.answer(approve(&question)).await.unwrap();
    until(&mut listener, is_result).await;
    other.close().await;
    let sums = rondo_runtime::usage::usage(
        &(std::sync::Arc::new(store) as rondo_core::storage::Store),
        rondo_runtime::usage::UsageBy::Session,
        rondo_types::TimeMs(0),
    );
    let sums: Vec<_> = sums.unwrap().into_values().collect();
    assert_eq!(
        sums.iter().map(|it| it.requests).collect::<Vec<_>>(),
        [3, 1]
    );
    assert_eq!(sums[0].usage.total(), 330);
}

#[tokio::test]
async fn a_session_that_was_imported_under_a_calls_id_is_not_its_child() {
    let world = World::new(script(|asked| match asked.is("Delegate") {
        true if asked.results.is_empty() => calls(&[task("go")]),
        true => text("Over."),
        false => text("Forged."),
    }))
    .await;
    let service = world.service();
    let other = service.new_session(world.options());
    let mut listener = other.subscribe(Cursor::START);
    ask(&other, "Forge").await;
    until(&mut listener, is_result).await;
    service.close().await;
    let dir = world.home.path().join("data/sessions");
    let store = rondo_journal::Store::open(&dir, rondo_journal::Options::default()).unwrap();
    let mut file = Vec::new();
    store.export(other.id(), &mut file).unwrap();
    let forged = SessionId::new("mine.r00100100");
    store.import(&mut &file[..], Some(&forged)).unwrap();

    let service = world.service();
    let session = service.session(SessionId::new("mine"), world.options());
    let mut listener = session.subscribe(Cursor::START);
    ask(&session, "Delegate").await;
    let told = until(&mut listener, is_result).await;
    let (code, result, _) = ends(&told).remove(0);
    assert_eq!(code, Some(ToolErrorCode::Failed), "{result}");
    assert!(result.contains("was imported"), "{result}");
}
