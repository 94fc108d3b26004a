//! The design of questions over a live Python session, at the prompt, by its acceptance list: a
//! scripted Gemini at a real socket, and a person at a real terminal.

use crate::harness::TestEnv;
use crate::person::{CTRL_C, Person};
use crate::repl::leave;
use rondo::design::python::{AgentConfig, LiveSession, ModelProvider, run_question};
use rondo::python::{Session, Settings};
use rondo::{Endpoint, HttpModel, ModelCard};
use rondo_testkit::{
    CallScript, ReplyScript, Response, Script, Server, assert_paired, faults, gemini,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Long enough for a step on a busy machine, and soon over.
const SHORT_STEP: &str = "[profiles.python.limits]\nstep_timeout_ms = 4_000\n";
const STOPPED: &str = "I could not finish the answer: ";

fn env(server: &Server) -> TestEnv {
    TestEnv::new()
        .var("GEMINI_API_KEY", "k-123456789")
        .var("GEMINI_MODEL", "gemini-2.5-flash")
        .var("GOOGLE_GEMINI_BASE_URL", &server.url(""))
}

fn call(name: &str, arguments: &Value) -> CallScript {
    CallScript::without_id(name, arguments)
}

fn eval(expr: &str) -> CallScript {
    call("eval_expr", &json!({ "expr": expr }))
}

fn calls(calls: impl IntoIterator<Item = CallScript>) -> Response {
    gemini::whole(&ReplyScript::calls(calls))
}

fn says(text: &str) -> Response {
    gemini::whole(&ReplyScript::text([text]))
}

fn malformed() -> Response {
    let candidate = json!({"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0});
    Response::json(200, &json!({"candidates": [candidate]}))
}

/// Starts the prompt and runs a cell: the interpreter is there, and `ages` in it.
async fn with_ages(env: &TestEnv, args: &[&str]) -> Person {
    let own = ["repl", "--profile", "python", "--mode", "python"];
    let mut person = Person::start(env, &[&own[..], args].concat());
    person.prompt("python").await;
    person.enter("ages = [40, 2]").await;
    person.prompt("python").await;
    person
}

/// Asks, and waits for the expected text and for the prompt.
async fn ask(person: &mut Person, question: &str, seen: &[&str]) {
    person.enter(&format!("# {question}")).await;
    for text in seen {
        person.sees(text).await;
    }
    person.prompt("python").await;
}

/// Limits and losses have cost the session nothing.
async fn ages_are_still_there(person: &mut Person) {
    person.enter("sum(ages) * 1000").await;
    person.sees("\n42000\n").await;
    person.prompt("python").await;
}

#[track_caller]
fn check_is_native(body: &Value) {
    assert_paired(body);
    let mut keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    keys.sort();
    let expected = ["contents", "systemInstruction", "toolConfig", "tools"];
    assert_eq!(keys, expected);
    let tools = body["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].as_object().unwrap().len(), 1);
    let declared = tools[0]["functionDeclarations"].as_array().unwrap();
    assert!(declared.iter().any(|it| it["name"] == "eval_expr"));
    let mode = &body["toolConfig"]["functionCallingConfig"]["mode"];
    assert_eq!(mode, "AUTO");
    let prompt = &body["systemInstruction"]["parts"][0]["text"];
    assert!(prompt.as_str().unwrap().starts_with("You are PyAIChat"));
}

/// The first of the list, the second and the fourth: the live session answers, calls of one reply run
/// in their order and go back together, and only Gemini's own words are on the wire.
#[tokio::test]
async fn py_t21_py_18_a_question_is_answered_by_calls_into_the_session_of_the_prompt() {
    let made = [
        eval("ages.append(1)"),
        call("get_repr", &json!({"expr": "ages"})),
        eval("ages.pop() + nobody"),
        call("frobnicate", &json!({})),
        call("get_type", &json!({"expr": "ages"})).signed("c2lnbmVk"),
    ];
    let server = Server::start([calls(made), says("They sum to 42.")]).await;
    let env = env(&server);
    let mut person = with_ages(&env, &[]).await;
    ask(&mut person, "What do ages sum to?", &["They sum to 42."]).await;
    assert!(!person.all().contains(STOPPED), "{}", person.all());
    ages_are_still_there(&mut person).await;
    leave(person).await;

    let bodies: Vec<Value> = server.requests().iter().map(|it| it.json()).collect();
    assert_eq!(bodies.len(), 2);
    bodies.iter().for_each(check_is_native);
    let question = json!({"role": "user", "parts": [{"text": "What do ages sum to?"}]});
    assert_eq!(bodies[0]["contents"], json!([question]));
    let contents = bodies[1]["contents"].as_array().unwrap();
    assert_eq!(contents.len(), 3);
    assert_eq!(contents[1]["role"], "model");
    assert_eq!(contents[1]["parts"][4]["thoughtSignature"], "c2lnbmVk");
    assert_eq!(contents[2]["role"], "user");
    let parts = contents[2]["parts"].as_array().unwrap();
    let response = |at: usize| &parts[at]["functionResponse"];
    let names: Vec<&Value> = (0..5).map(|at| &response(at)["name"]).collect();
    let expected = [
        "eval_expr",
        "get_repr",
        "eval_expr",
        "frobnicate",
        "get_type",
    ];
    assert_eq!(names, expected);
    // The second call sees what the first one did.
    let result = |at: usize| &response(at)["response"]["result"];
    assert_eq!(result(1)["repr"], "[40, 2, 1]");
    let code = |at: usize| &response(at)["response"]["error"]["code"];
    assert_eq!(code(2), "python_exception");
    assert_eq!(code(3), "unknown_function");
    assert_eq!(result(4)["qualified"], "builtins.list");
}

/// The third of the list, by steps.
#[tokio::test]
async fn py_t21_py_10_py_47_six_steps_end_a_question_with_what_was_found() {
    let server = Server::start(Script::repeat(calls([eval("sum(ages) + 1")]))).await;
    let env = env(&server);
    let mut person = with_ages(&env, &[]).await;
    let told = format!("{STOPPED}the limit of 6 steps was reached.");
    ask(
        &mut person,
        "for ever?",
        &[&told, "Confirmed so far:", "43"],
    )
    .await;
    ages_are_still_there(&mut person).await;
    leave(person).await;
    assert_eq!(server.requests().len(), 6);
}

/// The third of the list, by the time of a step; what the design gives is what the profile shows.
#[tokio::test]
async fn py_t21_py_11_py_47_a_step_that_takes_too_long_ends_a_question_with_what_was_found() {
    let server = Server::start([
        calls([eval("sum(ages) + 1")]),
        faults::zero_byte_stall(),
        says("Quick."),
    ])
    .await;
    let env = env(&server);
    let shown = env.run(&["profiles", "show", "python"]).await.stdout;
    for limit in ["step_timeout_ms = 8000", "turn_timeout_ms = 20000"] {
        assert!(shown.contains(limit), "{shown}");
    }
    env.user_config(SHORT_STEP);
    let mut person = with_ages(&env, &[]).await;
    let told = format!("{STOPPED}the model did not reply within 4 s.");
    ask(&mut person, "slowly?", &[&told, "Confirmed so far:", "43"]).await;
    ask(&mut person, "again?", &["Quick."]).await;
    ages_are_still_there(&mut person).await;
    leave(person).await;
    assert_eq!(server.requests().len(), 3);
}

/// The third of the list, by the time of a question: what runs in Python is within it.
#[tokio::test]
async fn py_t21_py_12_py_47_a_question_that_takes_too_long_ends_with_what_was_found() {
    let asleep = "__import__('time').sleep(1000)";
    let server = Server::start([calls([eval("sum(ages) + 1"), eval(asleep)])]).await;
    let env = env(&server);
    let mut person = with_ages(&env, &["--deadline", "4s"]).await;
    let told = format!("{STOPPED}the time limit of 4 s was reached.");
    ask(&mut person, "ever?", &[&told, "Confirmed so far:", "43"]).await;
    ages_are_still_there(&mut person).await;
    leave(person).await;
    assert_eq!(server.requests().len(), 1);
}

/// The fifth of the list.
#[tokio::test]
async fn py_t21_py_13_py_45_an_unusable_reply_is_corrected_once_and_the_second_ends_softly() {
    let server = Server::start([
        says(""),
        says("They are two."),
        calls([eval("sum(ages) + 1")]),
        malformed(),
        says(""),
    ])
    .await;
    let env = env(&server);
    let mut person = with_ages(&env, &[]).await;
    ask(&mut person, "How many ages?", &["They are two."]).await;
    ask(&mut person, "And?", &[STOPPED, "Confirmed so far:", "43"]).await;
    ages_are_still_there(&mut person).await;
    leave(person).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for corrected in [1, 4] {
        let body = requests[corrected].json();
        check_is_native(&body);
        let last = body["contents"].as_array().unwrap().last().unwrap();
        assert_eq!(last["role"], "user");
        let said = last["parts"].as_array().unwrap().last().unwrap();
        let said = said["text"].as_str().unwrap_or_default();
        assert!(
            said.starts_with("Your last reply could not be used"),
            "{said}"
        );
    }
}

/// The sixth of the list.
#[tokio::test]
async fn py_t21_py_50_a_model_without_function_calling_is_refused_at_the_start() {
    let server = Server::start(Script::default()).await;
    let env = env(&server).var("GEMINI_MODEL", "gemma-3-27b-it");
    let mut person = Person::start(&env, &["repl", "--profile", "python"]);
    person.sees("model `gemini/gemma-3-27b-it` cannot").await;
    person.sees("set `GEMINI_MODEL` to a model that can").await;
    assert_eq!(person.code().await, Some(52));
    assert!(server.requests().is_empty());
}

/// The prompt adds nothing of its own to a question: what it sends is what the library's question
/// sends, and the library alone decides when a reply cannot be used, and what follows.
#[tokio::test]
async fn py_51_the_prompt_asks_as_the_librarys_question_does() {
    let script = || {
        [
            calls([eval("sum([40, 2])"), call("get_type", &json!({}))]),
            says(""),
            malformed(),
        ]
    };
    let (prompt, library) = (Server::start(script()).await, Server::start(script()).await);
    let env = env(&prompt);
    let mut person = with_ages(&env, &[]).await;

    let mut endpoint = Endpoint::new("google", "gemini", library.url(""));
    endpoint.streaming = false;
    let model = HttpModel::new(&endpoint, ModelCard::new("gemini-2.5-flash")).unwrap();
    let settings = Settings::from_env(env.project()).expect("there is a `python3`");
    let live = LiveSession::new(Arc::new(Session::new(settings)));
    let config = AgentConfig {
        total_timeout_ms: 120_000,
        ..AgentConfig::default()
    };
    let provider = ModelProvider::new(Arc::new(model));
    let answer = run_question(&provider, &live, "What is it?", &config).await;
    let answer = answer.unwrap();
    assert!(answer.degraded);

    // The first line says what stopped it; the screen wraps what is longer than a line.
    let said: String = answer.text.chars().take(60).collect();
    ask(&mut person, "What is it?", &[&said, "Confirmed so far:"]).await;
    leave(person).await;
    // What each declares of its functions is its own; the seven are there.
    let sent = |server: &Server| -> Vec<Value> {
        let requests = server.requests();
        let mut bodies: Vec<Value> = requests.iter().map(|it| it.json()).collect();
        for body in &mut bodies {
            let tools = body.as_object_mut().unwrap().remove("tools").unwrap();
            let declared = tools[0]["functionDeclarations"].as_array().unwrap();
            assert!(declared.len() >= 7, "{declared:?}");
        }
        bodies
    };
    assert_eq!(sent(&prompt), sent(&library));
    assert_eq!(sent(&library).len(), 3);
}

/// Python code of the model is stopped by the key that stops the turn; the names stay.
#[tokio::test]
async fn py_t21_a_question_is_stopped_while_its_code_runs() {
    let asleep = "print('asleep', flush=True) or __import__('time').sleep(1000)";
    let server = Server::start([calls([eval(asleep)]), says("It was stopped.")]).await;
    let env = env(&server);
    let mut person = with_ages(&env, &["--deadline", "1h"]).await;
    person.enter("# sleep").await;
    person.sees("\nasleep").await;
    person.press(CTRL_C).await;
    person.sees("the turn was stopped").await;
    person.prompt("python").await;
    ages_are_still_there(&mut person).await;
    ask(&mut person, "and?", &["It was stopped."]).await;
    leave(person).await;
}

/// Returns the first words of the contents of each request, and how many contents there are.
fn openings(server: &Server) -> Vec<(Value, usize)> {
    let requests = server.requests();
    let bodies = requests.iter().map(|request| request.json());
    let opening = |body: Value| {
        let contents = body["contents"].as_array().unwrap();
        (contents[0]["parts"][0]["text"].clone(), contents.len())
    };
    bodies.map(opening).collect()
}

/// Promises of the prompt hold on the full screen, too.
#[tokio::test]
async fn py_42_the_full_screen_remembers_nothing_between_questions_under_the_python_profile() {
    let server = Server::start([says("One."), says("Two.")]).await;
    let env = env(&server);
    let mut person = Person::start(&env, &["--profile", "python"]);
    person.is_alternate().await;
    person.shows("? help").await;
    for (question, answer) in [("first?\r", "One."), ("second?\r", "Two.")] {
        person.press(question).await;
        person.shows(answer).await;
    }
    crate::screen::leave(person).await;
    let expected = [(json!("first?"), 1), (json!("second?"), 1)];
    assert_eq!(openings(&server), expected);
}

/// A profile that builds on it keeps nothing either, unless it says so.
#[tokio::test]
async fn py_42_a_continued_session_remembers_nothing_under_the_python_profile_or_its_children() {
    for (profile, remembered) in [("python", 1), ("mine", 1), ("other", 3)] {
        let server = Server::start([says("One."), says("Two.")]).await;
        let env = env(&server);
        env.user_config(
            "[profiles.mine]\nextends = 'python'\n[profiles.other]\nextends = 'python'\n\
             compaction.max_messages = 20\n",
        );
        for (question, session) in [("first?", None), ("second?", Some("-c"))] {
            let args = ["ask", "--profile", profile, question];
            let ran = env.run(&[&args[..], session.as_slice()].concat()).await;
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        assert_eq!(openings(&server)[1].1, remembered, "{profile}");
    }
}
