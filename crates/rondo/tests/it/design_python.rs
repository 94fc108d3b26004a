//! The Python design through its own surface: a provider of its own, and Gemini over a socket.

use crate::support::bodies;
use rondo::design::python::{
    AgentAnswer, AgentConfig, AssistantCandidate, AssistantInput, AssistantMessage,
    AssistantOutput, AssistantPart, AssistantRole, BoundedDir, BoundedDoc, BoundedRepr,
    CapabilityError, CapabilityProvider, CapabilityResult, EvalResult, ExceptionInfo,
    FunctionDeclaration, GlobalInfo, LlmProvider, ModelProvider, ToolCallingMode, TypeInfo,
    function_declarations, run_question,
};
use rondo::{Endpoint, HttpModel, ModelCard, async_trait, profiles};
use rondo_testkit::{CallScript, ReplyScript, Response, Server, faults, gemini};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// Model that gives its replies one after the other, and records its requests.
#[derive(Default)]
struct Scripted {
    replies: Mutex<VecDeque<AssistantOutput>>,
    asked: Mutex<Vec<AssistantInput>>,
}

impl Scripted {
    fn new(replies: impl IntoIterator<Item = AssistantOutput>) -> Self {
        Self {
            replies: Mutex::new(replies.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    fn asked(&self) -> Vec<AssistantInput> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl LlmProvider for Scripted {
    async fn complete(&self, input: AssistantInput) -> anyhow::Result<AssistantOutput> {
        self.asked.lock().unwrap().push(input);
        let next = self.replies.lock().unwrap().pop_front();
        next.ok_or_else(|| anyhow::anyhow!("out of replies"))
    }
}

/// A session with one list in it.
#[derive(Default)]
struct Session {
    calls: Mutex<Vec<String>>,
}

impl Session {
    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }
}

fn division() -> ExceptionInfo {
    ExceptionInfo {
        exc_type: "ZeroDivisionError".to_owned(),
        message: "division by zero".to_owned(),
        traceback: "Traceback ...".to_owned(),
    }
}

#[async_trait]
impl CapabilityProvider for Session {
    async fn list_globals(&self) -> CapabilityResult<Vec<GlobalInfo>> {
        self.note("list_globals");
        let (name, type_name) = ("x".to_owned(), "int".to_owned());
        Ok(vec![GlobalInfo { name, type_name }])
    }

    async fn get_type(&self, expr: &str) -> CapabilityResult<TypeInfo> {
        self.note(expr);
        Ok(TypeInfo {
            name: "list".to_owned(),
            module: "builtins".to_owned(),
            qualified: "builtins.list".to_owned(),
        })
    }

    async fn get_repr(&self, expr: &str) -> CapabilityResult<BoundedRepr> {
        self.note(expr);
        Ok(BoundedRepr {
            repr: "[1, 2]".to_owned(),
            truncated: false,
            original_len: 6,
        })
    }

    async fn get_dir(&self, expr: &str) -> CapabilityResult<BoundedDir> {
        self.note(expr);
        Ok(BoundedDir {
            members: vec!["append".to_owned(), "clear".to_owned()],
            truncated: false,
            original_len: 2,
        })
    }

    async fn get_doc(&self, expr: &str) -> CapabilityResult<BoundedDoc> {
        self.note(expr);
        Ok(BoundedDoc {
            doc: None,
            truncated: false,
            original_len: 0,
        })
    }

    async fn eval_expr(&self, expr: &str) -> CapabilityResult<EvalResult> {
        self.note(expr);
        match expr {
            "1/0" => Err(CapabilityError::PythonException(division())),
            "while" => Err(CapabilityError::InvalidArgs("not an expression".to_owned())),
            "gone" => Err(CapabilityError::Internal("the session is gone".to_owned())),
            "panic" => panic!("in the session"),
            "forever" => std::future::pending().await,
            _ => Ok(EvalResult {
                value_repr: "42".to_owned(),
                stdout: String::new(),
                stderr: String::new(),
            }),
        }
    }

    async fn get_last_exception(&self) -> CapabilityResult<Option<ExceptionInfo>> {
        self.note("get_last_exception");
        Ok(None)
    }
}

fn text(text: &str) -> AssistantPart {
    AssistantPart::Text(text.to_owned())
}

fn call(id: Option<&str>, name: &str, args_json: Value) -> AssistantPart {
    AssistantPart::FunctionCall {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        args_json,
    }
}

fn eval(expr: &str) -> AssistantPart {
    call(None, "eval_expr", json!({"expr": expr}))
}

fn says(parts: Vec<AssistantPart>) -> AssistantOutput {
    AssistantOutput::of_parts(parts)
}

async fn ask(replies: Vec<AssistantOutput>) -> (Vec<AssistantInput>, AgentAnswer) {
    let provider = Scripted::new(replies);
    let config = AgentConfig::default();
    let answer = run_question(&provider, &Session::default(), "what is x?", &config).await;
    (provider.asked(), answer.unwrap())
}

/// Returns the results of the functions in the last request.
fn responses(asked: &[AssistantInput]) -> Vec<Value> {
    let parts = &asked.last().unwrap().messages.last().unwrap().parts;
    let responses = parts.iter().map(|part| match part {
        AssistantPart::FunctionResponse { response_json, .. } => response_json.clone(),
        other => panic!("{other:?}"),
    });
    responses.collect()
}

#[tokio::test]
async fn py_1_py_2_py_3_py_22_py_23_py_24_py_25_messages_keep_role_parts_and_ids() {
    let said = vec![
        text("Let me"),
        text(" look."),
        call(Some("c1"), "get_type", json!({"expr": "x"})),
        call(None, "list_globals", json!({})),
    ];
    let (asked, answer) = ask(vec![says(said.clone()), says(vec![text("A list.")])]).await;
    assert_eq!(answer.text, "A list.");
    let envelope = |result: Value| json!({"ok": true, "result": result});
    let response = |id: Option<&str>, name: &str, result: Value| AssistantPart::FunctionResponse {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        response_json: envelope(result),
    };
    let list = json!({"name": "list", "module": "builtins", "qualified": "builtins.list"});
    let globals = json!({"globals": [{"name": "x", "type_name": "int"}]});
    let message = |role, parts| AssistantMessage { role, parts };
    let expected = [
        message(AssistantRole::User, vec![text("what is x?")]),
        message(AssistantRole::Model, said),
        message(
            AssistantRole::Tool,
            vec![
                response(Some("c1"), "get_type", list),
                response(None, "list_globals", globals),
            ],
        ),
    ];
    assert_eq!(asked[1].messages, expected);
    assert_eq!(asked[0].messages, expected[..1]);
}

#[tokio::test]
async fn py_4_py_6_py_7_the_input_has_prompt_messages_declarations_and_mode() {
    let (asked, _) = ask(vec![says(vec![text("ok")])]).await;
    let declared = function_declarations();
    let names: Vec<&str> = declared.iter().map(|it| it.name.as_str()).collect();
    let seven = [
        "list_globals",
        "get_type",
        "get_repr",
        "get_dir",
        "get_doc",
        "eval_expr",
        "get_last_exception",
    ];
    assert_eq!(names, seven);
    let profile = profiles::builtin("python").unwrap();
    assert_eq!(asked[0].system_instruction, profile.system_prompt);
    assert_eq!(asked[0].tools, declared);
    assert_eq!(asked[0].tool_calling_mode, ToolCallingMode::Auto);
    assert_eq!(json!(ToolCallingMode::Auto), "AUTO");
    let FunctionDeclaration {
        description,
        parameters_json_schema,
        ..
    } = &declared[1];
    assert!(!description.is_empty());
    assert_eq!(parameters_json_schema["required"], json!(["expr"]));
}

#[tokio::test]
async fn py_5_the_first_usable_candidate_counts_whatever_its_place() {
    let candidate = |said: &str, finish: Option<&str>, safety_blocked| AssistantCandidate {
        message: AssistantMessage {
            role: AssistantRole::Model,
            parts: vec![text(said)],
        },
        finish_reason: finish.map(str::to_owned),
        safety_blocked,
    };
    let candidates = vec![
        candidate("blocked", Some("STOP"), true),
        candidate("filtered", Some("SAFETY"), false),
        candidate("malformed", Some("MALFORMED_FUNCTION_CALL"), false),
        candidate("  ", Some("STOP"), false),
        candidate("good", None, false),
        candidate("late", Some("STOP"), false),
    ];
    let (asked, answer) = ask(vec![AssistantOutput { candidates }]).await;
    assert_eq!(answer.text, "good");
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn py_8_py_9_py_10_py_47_a_question_becomes_an_answer_or_a_degraded_one() {
    let (_, answer) = ask(vec![says(vec![text("42")])]).await;
    let whole = AgentAnswer {
        text: "42".to_owned(),
        degraded: false,
    };
    assert_eq!(answer, whole);

    for (calls, degraded) in [(5, false), (6, true)] {
        let mut replies = vec![says(vec![eval("6 * 7")]); calls];
        replies.push(says(vec![text("done")]));
        let (asked, answer) = ask(replies).await;
        assert_eq!(asked.len(), 6);
        assert_eq!(answer.degraded, degraded);
        assert_eq!(answer.text == "done", !degraded);
        assert!(!degraded || answer.text.contains("42"), "{}", answer.text);
    }

    let config = AgentConfig {
        max_steps: 0,
        ..AgentConfig::default()
    };
    let error = run_question(&Scripted::default(), &Session::default(), "q", &config).await;
    assert!(error.unwrap_err().to_string().contains("max_steps"));
}

#[test]
fn py_10_py_11_py_12_py_13_the_configurations_defaults_are_the_profiles() {
    let config = AgentConfig::default();
    let limits = profiles::builtin("python").unwrap().limits;
    let millis = |timeout: Option<std::time::Duration>| timeout.unwrap().as_millis();
    assert_eq!(config.max_steps, limits.max_steps as usize);
    assert_eq!(
        u128::from(config.per_step_timeout_ms),
        millis(limits.step_timeout)
    );
    assert_eq!(
        u128::from(config.total_timeout_ms),
        millis(limits.turn_timeout)
    );
    assert_eq!(
        config.invalid_response_retries,
        limits.invalid_retries as usize
    );
}

#[tokio::test]
async fn py_27_py_28_calls_run_one_after_the_other_as_received() {
    let said = says(vec![
        eval("a"),
        call(None, "get_repr", json!({"expr": "b"})),
        eval("c"),
    ]);
    let provider = Scripted::new([said, says(vec![text("ok")])]);
    let session = Session::default();
    run_question(&provider, &session, "q", &AgentConfig::default())
        .await
        .unwrap();
    assert_eq!(*session.calls.lock().unwrap(), ["a", "b", "c"]);
    assert_eq!(responses(&provider.asked()).len(), 3);
}

#[tokio::test]
async fn py_31_py_32_py_33_py_34_failures_are_envelopes_with_one_of_four_codes() {
    let said = says(vec![
        eval("1/0"),
        call(None, "frobnicate", json!({})),
        call(None, "get_type", json!({})),
        eval("while"),
        eval("gone"),
        eval("panic"),
    ]);
    let (asked, answer) = ask(vec![said, says(vec![text("I see.")])]).await;
    assert_eq!(answer.text, "I see.");
    let responses = responses(&asked);
    let raised = json!({"ok": false, "error": {
        "code": "python_exception",
        "message": "ZeroDivisionError: division by zero",
        "details": {
            "exc_type": "ZeroDivisionError",
            "message": "division by zero",
            "traceback": "Traceback ...",
        },
    }});
    assert_eq!(responses[0], raised);
    let codes: Vec<&Value> = responses.iter().map(|it| &it["error"]["code"]).collect();
    let (invalid, internal) = ("invalid_args", "internal");
    let expected = [
        "python_exception",
        "unknown_function",
        invalid,
        invalid,
        internal,
        internal,
    ];
    assert_eq!(codes, expected);
}

#[tokio::test]
async fn py_35_py_36_py_37_py_38_py_39_py_40_py_41_each_capability_returns_its_own_shape() {
    let expr = json!({"expr": "x"});
    let cases = [
        (
            "list_globals",
            json!({}),
            json!({"globals": [{"name": "x", "type_name": "int"}]}),
        ),
        (
            "get_type",
            expr.clone(),
            json!({"name": "list", "module": "builtins", "qualified": "builtins.list"}),
        ),
        (
            "get_repr",
            expr.clone(),
            json!({"repr": "[1, 2]", "truncated": false, "original_len": 6}),
        ),
        (
            "get_dir",
            expr.clone(),
            json!({"members": ["append", "clear"], "truncated": false, "original_len": 2}),
        ),
        (
            "get_doc",
            expr.clone(),
            json!({"doc": null, "truncated": false, "original_len": 0}),
        ),
        (
            "eval_expr",
            expr,
            json!({"value_repr": "42", "stdout": "", "stderr": ""}),
        ),
        ("get_last_exception", json!({}), json!({"exception": null})),
    ];
    let said = cases
        .iter()
        .map(|(name, args, _)| call(None, name, args.clone()));
    let (asked, _) = ask(vec![says(said.collect()), says(vec![text("ok")])]).await;
    let returned = responses(&asked);
    for ((name, _, expected), response) in cases.iter().zip(returned) {
        assert_eq!(response, json!({"ok": true, "result": expected}), "{name}");
    }
    let raised = json!({"exception": Some(division())});
    assert_eq!(raised["exception"]["exc_type"], "ZeroDivisionError");
}

/// Never answers.
struct Silent;

#[async_trait]
impl LlmProvider for Silent {
    async fn complete(&self, _: AssistantInput) -> anyhow::Result<AssistantOutput> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn py_43_py_44_a_silent_provider_and_an_endless_capability_end_in_time() {
    let config = AgentConfig::default();
    let answer = run_question(&Silent, &Session::default(), "q", &config)
        .await
        .unwrap();
    assert!(
        answer.degraded && answer.text.contains("within 8 s"),
        "{}",
        answer.text
    );

    let provider = Scripted::new([says(vec![eval("6 * 7"), eval("forever")])]);
    let answer = run_question(&provider, &Session::default(), "q", &config)
        .await
        .unwrap();
    assert!(
        answer.degraded && answer.text.contains("20 s"),
        "{}",
        answer.text
    );
    assert!(answer.text.contains("42"), "{}", answer.text);
}

#[tokio::test]
async fn py_45_py_48_unusable_replies_are_corrected_once_and_failures_are_told() {
    let empty = AssistantOutput::default();
    let (asked, answer) = ask(vec![empty.clone(), empty.clone()]).await;
    assert_eq!(asked.len(), 2);
    let last = asked[1].messages.last().unwrap();
    assert_eq!(last.role, AssistantRole::User);
    assert!(answer.degraded);

    let (asked, answer) = ask(vec![empty, says(vec![text("better")])]).await;
    assert_eq!((asked.len(), answer.degraded), (2, false));

    let (asked, answer) = ask(vec![says(vec![eval("6 * 7")])]).await;
    assert_eq!(asked.len(), 2);
    assert!(
        answer.degraded && answer.text.contains("out of replies"),
        "{}",
        answer.text
    );
    assert!(answer.text.contains("42"), "{}", answer.text);
}

/// The same path over the wire, if the provider is a Gemini endpoint.
#[tokio::test]
async fn py_13_py_48_a_payload_of_an_endpoint_that_cannot_be_used_is_corrected_once() {
    for body in crate::python::MALFORMED {
        let good = || gemini::whole(&ReplyScript::text(["It is 42."]));
        let bad = || Response::text(200, body);
        let server = Server::start([bad(), good()]).await;
        let config = AgentConfig::default();
        let answer = run_question(&provider(&server), &Session::default(), "q", &config).await;
        let answer = answer.unwrap();
        assert_eq!(answer.text, "It is 42.", "{body}");
        assert!(!answer.degraded, "{body}");

        let server = Server::start([signed(), bad(), bad(), good()]).await;
        let answer = run_question(&provider(&server), &Session::default(), "q", &config).await;
        let answer = answer.unwrap();
        assert!(answer.degraded, "{body}");
        assert!(answer.text.contains("42"), "{body}: {}", answer.text);
        assert_eq!(server.requests().len(), 3, "{body}");
    }
}

/// A provider that leaves arguments out is asked on as it was, and the capability gets none.
#[tokio::test]
async fn py_23_arguments_that_a_provider_left_out_stay_left_out() {
    let bare = AssistantPart::FunctionCall {
        id: None,
        name: "list_globals".to_owned(),
        args_json: Value::Null,
    };
    let (asked, answer) = ask(vec![says(vec![bare.clone()]), says(vec![text("two")])]).await;
    assert_eq!((answer.text.as_str(), answer.degraded), ("two", false));
    assert_eq!(asked[1].messages[1].parts, [bare]);
    let AssistantPart::FunctionResponse { response_json, .. } = &asked[1].messages[2].parts[0]
    else {
        panic!("{:?}", asked[1].messages[2])
    };
    assert_eq!(response_json["ok"], true, "{response_json}");
}

fn provider(server: &Server) -> ModelProvider {
    let mut endpoint = Endpoint::new("google", "gemini", server.url(""));
    endpoint.streaming = false;
    let model = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap();
    ModelProvider::new(Arc::new(model))
}

fn signed() -> Response {
    let call = CallScript::without_id("eval_expr", &json!({"expr": "6 * 7"})).signed("c2lnbmVk");
    gemini::whole(&ReplyScript::calls([call]).saying("Evaluating."))
}

/// Parts of the model are sent back to it with their signatures.
fn assert_signed(body: &Value) {
    let part = &body["contents"][1]["parts"][1];
    assert_eq!(part["functionCall"]["name"], "eval_expr");
    assert_eq!(part["thoughtSignature"], "c2lnbmVk", "{body}");
    let response = &body["contents"][2]["parts"][0]["functionResponse"];
    assert_eq!(response["response"]["result"]["value_repr"], "42");
}

#[tokio::test]
async fn py_14_py_15_py_16_py_17_py_23_a_question_over_gemini_returns_signatures() {
    let answer = gemini::whole(&ReplyScript::text(["It is 42."]));
    let server = Server::start([signed(), answer]).await;
    let config = AgentConfig::default();
    let answer = run_question(&provider(&server), &Session::default(), "q", &config).await;
    assert_eq!(answer.unwrap().text, "It is 42.");
    let bodies = bodies(&server);
    assert_signed(&bodies[1]);
    assert_eq!(
        bodies[1]["toolConfig"]["functionCallingConfig"]["mode"],
        "AUTO"
    );
    let tools = bodies[1]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(
        tools[0]["functionDeclarations"].as_array().unwrap().len(),
        7
    );
}

#[tokio::test]
async fn py_23_a_provider_over_gemini_restores_signatures_where_another_loop_calls_it() {
    let answer = gemini::whole(&ReplyScript::text(["It is 42."]));
    let server = Server::start([signed(), answer]).await;
    let provider = provider(&server);
    let mut input = AssistantInput {
        system_instruction: Some("Be brief.".to_owned()),
        messages: vec![AssistantMessage {
            role: AssistantRole::User,
            parts: vec![text("q")],
        }],
        tools: function_declarations(),
        tool_calling_mode: ToolCallingMode::Auto,
    };
    let first = provider.complete(input.clone()).await.unwrap();
    let candidate = first.candidates.into_iter().next().unwrap();
    assert_eq!(candidate.finish_reason.as_deref(), Some("STOP"));
    assert!(!candidate.safety_blocked);
    assert_eq!(
        candidate.message.parts,
        [text("Evaluating."), eval("6 * 7")]
    );
    input.messages.push(candidate.message);
    input.messages.push(AssistantMessage {
        role: AssistantRole::Tool,
        parts: vec![AssistantPart::FunctionResponse {
            id: None,
            name: "eval_expr".to_owned(),
            response_json: json!({"ok": true, "result": {"value_repr": "42"}}),
        }],
    });
    let second = provider.complete(input).await.unwrap();
    assert_eq!(second.candidates[0].message.parts, [text("It is 42.")]);
    assert_signed(&bodies(&server)[1]);
}

#[tokio::test]
async fn py_23_replies_that_look_alike_keep_each_its_own_signature() {
    let look = |signature: &str| {
        let call = CallScript::without_id("list_globals", &json!({})).signed(signature);
        gemini::whole(&ReplyScript::calls([call]))
    };
    let answer = gemini::whole(&ReplyScript::text(["None."]));
    let server = Server::start([look("Zmlyc3Q="), look("c2Vjb25k"), answer]).await;
    let provider = provider(&server);
    let mut input = AssistantInput {
        system_instruction: None,
        messages: vec![AssistantMessage {
            role: AssistantRole::User,
            parts: vec![text("q")],
        }],
        tools: function_declarations(),
        tool_calling_mode: ToolCallingMode::Auto,
    };
    for _ in 0..2 {
        let reply = provider.complete(input.clone()).await.unwrap();
        let candidate = reply.candidates.into_iter().next().unwrap();
        input.messages.push(candidate.message);
        input.messages.push(AssistantMessage {
            role: AssistantRole::Tool,
            parts: vec![AssistantPart::FunctionResponse {
                id: None,
                name: "list_globals".to_owned(),
                response_json: json!({"ok": true, "result": {"globals": []}}),
            }],
        });
    }
    provider.complete(input).await.unwrap();
    let contents = &bodies(&server)[2]["contents"];
    let signatures = [1, 3].map(|place| &contents[place]["parts"][0]["thoughtSignature"]);
    assert_eq!(signatures, ["Zmlyc3Q=", "c2Vjb25k"]);
}

#[tokio::test]
async fn py_5_a_candidate_without_a_finish_reason_is_used() {
    let mut output = says(vec![text("It is 42.")]);
    output.candidates[0].finish_reason = None;
    let (asked, answer) = ask(vec![output]).await;
    assert_eq!((asked.len(), answer.text.as_str()), (1, "It is 42."));
    assert!(!answer.degraded);
}

#[tokio::test]
async fn py_10_py_11_py_12_py_13_limits_may_be_as_large_as_their_types() {
    let config = AgentConfig {
        max_steps: usize::MAX,
        per_step_timeout_ms: u64::MAX,
        total_timeout_ms: u64::MAX,
        invalid_response_retries: usize::MAX,
    };
    let provider = Scripted::new([says(vec![eval("6 * 7")]), says(vec![text("It is 42.")])]);
    let answer = run_question(&provider, &Session::default(), "q", &config).await;
    let answer = answer.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.degraded),
        ("It is 42.", false)
    );
}

#[tokio::test]
async fn py_20_blocks_and_failures_of_gemini_reach_the_designs_types() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let filtered = json!({"candidates": [{"finishReason": "SAFETY", "index": 0}]});
    for body in [blocked, filtered] {
        let server = Server::start(Response::json(200, &body)).await;
        let input = AssistantInput {
            system_instruction: None,
            messages: vec![AssistantMessage {
                role: AssistantRole::User,
                parts: vec![text("q")],
            }],
            tools: Vec::new(),
            tool_calling_mode: ToolCallingMode::Auto,
        };
        let output = provider(&server).complete(input).await.unwrap();
        assert!(output.candidates[0].safety_blocked);
        assert_eq!(
            output.candidates[0].finish_reason.as_deref(),
            Some("SAFETY")
        );
    }
    let server = Server::start(faults::html_error(503)).await;
    let config = AgentConfig::default();
    let answer = run_question(&provider(&server), &Session::default(), "q", &config).await;
    assert!(answer.unwrap().degraded);
}

#[test]
fn py_42_a_question_can_be_asked_from_any_thread() {
    fn is<T: Send + Sync + Debug>() {}
    fn sends<T: Send>(_: &T) {}
    is::<AssistantInput>();
    is::<AssistantOutput>();
    is::<AgentAnswer>();
    is::<ModelProvider>();
    let (provider, session, config) = (Silent, Session::default(), AgentConfig::default());
    sends(&run_question(&provider, &session, "q", &config));
}
