//! Interceptors: what they deny, change, add and stop, and the treatment of those that fail.

use super::fakes::{AskAlways, Bench, Ran, answer, calls};
use super::journal::kinds;
use crate::history::History;
use crate::ports::{
    Approver, CallDecision, FinishedCall, Gate, GateRequest, INTERCEPT_TIMEOUT, Interception,
    Interceptor, QuestionReply, Record, RecordBody, ResultDecision, StepContext, StepDecision,
    Verdict,
};
use async_trait::async_trait;
use rondo_types::{
    AnswerValue, CallId, EventBody, Outcome, Question, StopReason, ToolContent, ToolErrorCode,
    ToolOutcome,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Says the same about everything, and notes what it was asked.
struct Says {
    name: &'static str,
    step: StepDecision,
    call: CallDecision,
    result: ResultDecision,
    asked: Arc<Mutex<Vec<String>>>,
}

fn says(name: &'static str) -> Says {
    Says {
        name,
        step: StepDecision::Continue,
        call: CallDecision::Allow,
        result: ResultDecision::Keep,
        asked: Arc::default(),
    }
}

impl Says {
    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }
}

#[async_trait]
impl Interceptor for Says {
    fn name(&self) -> &str {
        self.name
    }

    async fn turn_start(&self, step: &StepContext) -> StepDecision {
        self.note(format!("turn {} with {}", step.turn_number, step.model));
        StepDecision::Continue
    }

    async fn step_start(&self, step: &StepContext) -> StepDecision {
        self.note(format!("step {}", step.step));
        self.step.clone()
    }

    async fn before_tool(&self, call: &GateRequest) -> CallDecision {
        self.note(format!("before {} {}", call.spec.name, call.arguments));
        self.call.clone()
    }

    async fn after_tool(&self, call: &FinishedCall) -> ResultDecision {
        self.note(format!("after {} {}", call.tool, call.arguments));
        self.result.clone()
    }

    async fn turn_end(&self, outcome: &Outcome) {
        self.note(format!("end {}", outcome.stop_reason));
    }
}

/// Fails at one point, and by a panic or by never answering.
struct Fails {
    at: &'static str,
    panics: bool,
}

impl Fails {
    async fn at(&self, point: &str) {
        if self.at == point {
            assert!(!self.panics, "broken");
            std::future::pending().await
        }
    }
}

#[async_trait]
impl Interceptor for Fails {
    fn name(&self) -> &str {
        "fails"
    }

    async fn step_start(&self, _: &StepContext) -> StepDecision {
        self.at("step").await;
        StepDecision::Continue
    }

    async fn before_tool(&self, _: &GateRequest) -> CallDecision {
        self.at("before").await;
        CallDecision::Allow
    }

    async fn after_tool(&self, _: &FinishedCall) -> ResultDecision {
        self.at("after").await;
        ResultDecision::Keep
    }

    async fn turn_end(&self, _: &Outcome) {
        self.at("end").await;
    }
}

/// Judges by the arguments, and notes them.
#[derive(Default)]
struct Judges {
    seen: Mutex<Vec<Value>>,
    denies: Option<Value>,
}

#[async_trait]
impl Gate for Judges {
    async fn check(&self, request: &GateRequest) -> Verdict {
        self.seen.lock().unwrap().push(request.arguments.clone());
        match self.denies.as_ref() == Some(&request.arguments) {
            true => Verdict::Deny {
                reason: "not these".to_owned(),
            },
            false => Verdict::Allow,
        }
    }
}

fn bench(interceptors: Vec<Arc<dyn Interceptor>>) -> Bench {
    let script = vec![calls(&[("put", r#"{"n":1}"#)]), answer("done")];
    let mut bench = Bench::new("default", script).tool("put", false, &[]);
    bench.interceptors = interceptors;
    bench
}

fn rewrites(name: &'static str, arguments: Value) -> Arc<dyn Interceptor> {
    Arc::new(Says {
        call: CallDecision::Rewrite { arguments },
        ..says(name)
    })
}

/// Runs a turn, and returns what is recorded of it; its messages are those that its records tell.
async fn ran(bench: Bench) -> (Ran, Vec<Record>) {
    let records = Arc::clone(&bench.records);
    let ran = bench.run().await;
    let records = records.records();
    let transcript = History::of(&records).transcript();
    assert_eq!(transcript, ran.outcome.transcript);
    (ran, records)
}

/// Result of the only call, as the model reads it.
fn result(ran: &Ran) -> (Option<ToolErrorCode>, String) {
    let mut results = ran.outcome.transcript.iter().flat_map(|it| it.results());
    let result = results.next().unwrap();
    let ToolContent::Text(text) = &result.content else {
        panic!("{result:?}")
    };
    (result.error, text.clone())
}

fn intercepted(records: &[Record]) -> Vec<Interception> {
    let all = records.iter().filter_map(|it| match &it.body {
        RecordBody::Intercepted(what) => Some(what.clone()),
        _ => None,
    });
    all.collect()
}

fn call_id() -> CallId {
    CallId::generated(1, 1, 0)
}

#[tokio::test(start_paused = true)]
async fn an_interceptor_is_asked_at_every_point_in_order() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let watches = Says {
        asked: Arc::clone(&asked),
        ..says("watches")
    };
    let (ran, records) = ran(bench(vec![Arc::new(watches)])).await;
    assert_eq!(result(&ran), (None, r#"put did {"n":1}"#.to_owned()));
    assert_eq!(
        *asked.lock().unwrap(),
        [
            "turn 1 with p/m",
            "step 1",
            r#"before put {"n":1}"#,
            r#"after put {"n":1}"#,
            "step 2",
            "end complete",
        ]
    );
    let call_id = call_id();
    assert_eq!(intercepted(&records), [Interception::Allowed { call_id }]);
}

#[tokio::test(start_paused = true)]
async fn the_gate_judges_a_call_as_the_last_interceptor_rewrote_it() {
    let gate = Arc::new(Judges::default());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let second = Says {
        call: CallDecision::Rewrite {
            arguments: json!({"n": 3}),
        },
        asked: Arc::clone(&asked),
        ..says("second")
    };
    let mut bench = bench(vec![rewrites("first", json!({"n": 2})), Arc::new(second)]);
    bench.gate = Arc::clone(&gate) as _;
    let (ran, records) = ran(bench).await;
    assert_eq!(*gate.seen.lock().unwrap(), [json!({"n": 3})]);
    assert!(
        asked
            .lock()
            .unwrap()
            .contains(&r#"before put {"n":2}"#.to_owned())
    );
    let note = r#"[first, second changed the arguments to {"n":3}]"#;
    let text = format!("{note}\nput did {{\"n\":3}}");
    assert_eq!(result(&ran), (None, text));
    let by = vec!["first".to_owned(), "second".to_owned()];
    let arguments = json!({"n": 3});
    let what = Interception::Rewritten {
        call_id: call_id(),
        by: by.clone(),
        arguments: arguments.clone(),
    };
    assert_eq!(intercepted(&records), [what]);
    let id = call_id();
    let told = EventBody::ToolCallRewritten { id, by, arguments };
    assert!(ran.events.iter().any(|it| it.body == told));
    let kinds = kinds(&records);
    let place = |kind| kinds.iter().position(|it| *it == kind).unwrap();
    assert!(place("intercepted") < place("gate_judged"));
    assert!(place("gate_judged") < place("tool_started"));
}

#[tokio::test(start_paused = true)]
async fn a_denial_beats_what_others_allow() {
    let denies = |name| {
        Arc::new(Says {
            call: CallDecision::Deny {
                reason: "no".to_owned(),
            },
            ..says(name)
        }) as Arc<dyn Interceptor>
    };
    let gate = Arc::new(Judges::default());
    let mut by_the_second = bench(vec![rewrites("first", json!({"n": 2})), denies("second")]);
    by_the_second.gate = Arc::clone(&gate) as _;
    let (seen, records) = ran(by_the_second).await;
    let text = "error (denied): second denied the call: no".to_owned();
    assert_eq!(result(&seen), (Some(ToolErrorCode::Denied), text));
    assert_eq!(*gate.seen.lock().unwrap(), [json!(null); 0]);
    assert!(!kinds(&records).contains(&"tool_started"));

    let mut by_the_gate = bench(vec![
        rewrites("first", json!({"n": 2})),
        Arc::new(says("allows")),
    ]);
    by_the_gate.gate = Arc::new(Judges {
        denies: Some(json!({"n": 2})),
        ..Judges::default()
    });
    let (seen, records) = ran(by_the_gate).await;
    let (code, text) = result(&seen);
    assert_eq!(code, Some(ToolErrorCode::Denied));
    assert!(text.ends_with("not these"), "{text}");
    assert!(!kinds(&records).contains(&"tool_started"));
}

#[tokio::test(start_paused = true)]
async fn a_rewritten_call_that_does_not_fit_the_schema_does_not_run() {
    let (seen, records) = ran(bench(vec![rewrites("first", json!(["n"]))])).await;
    let (code, text) = result(&seen);
    assert_eq!(code, Some(ToolErrorCode::InvalidArgs));
    assert!(
        text.starts_with("[first changed the arguments to [\"n\"]]"),
        "{text}"
    );
    assert!(!kinds(&records).contains(&"tool_started"));
}

#[tokio::test(start_paused = true)]
async fn the_model_reads_what_an_interceptor_made_of_a_result() {
    let hides = Says {
        result: ResultDecision::Rewrite {
            text: "nothing to see".to_owned(),
        },
        ..says("hides")
    };
    let (seen, records) = ran(bench(vec![Arc::new(hides)])).await;
    assert_eq!(result(&seen), (None, "nothing to see".to_owned()));
    let shown = format!("{:?} {:?}", seen.events, seen.outcome.findings);
    assert!(!shown.contains("put did"), "{shown}");
    // The record keeps what the tool returned.
    let finished = records.iter().find_map(|it| match &it.body {
        RecordBody::ToolFinished { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    let did = ToolOutcome::text(r#"put did {"n":1}"#);
    assert_eq!(finished, Some(did));
}

#[tokio::test(start_paused = true)]
async fn what_an_interceptor_adds_is_read_by_the_model_and_recorded() {
    let adds = Says {
        step: StepDecision::Add {
            text: "mind the gap".to_owned(),
        },
        ..says("adds")
    };
    let bench = bench(vec![Arc::new(adds)]);
    let records = Arc::clone(&bench.records);
    let (_, model) = bench.run_with(|_| async {}).await;
    for request in model.requests.lock().unwrap().iter() {
        let last = request.messages.last().unwrap();
        assert_eq!(last.text(), "mind the gap");
        assert!(last.synthetic);
    }
    assert_eq!(model.requests.lock().unwrap().len(), 2);
    let kinds = kinds(&records.records());
    assert_eq!(
        kinds[3..6],
        ["intercepted", "message_added", "model_requested"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_interceptor_stops_a_turn_before_its_request() {
    let stops = Says {
        step: StepDecision::Stop {
            reason: "closed on sundays".to_owned(),
        },
        ..says("hours")
    };
    let (seen, records) = ran(bench(vec![Arc::new(stops)])).await;
    assert_eq!(seen.outcome.stop_reason, StopReason::Intercepted);
    let text = &seen.outcome.text;
    assert!(
        text.contains("hours stopped the turn: closed on sundays"),
        "{text}"
    );
    assert!(!kinds(&records).contains(&"model_requested"));
}

#[tokio::test(start_paused = true)]
async fn an_interceptor_that_panics_or_hangs_denies_and_withholds() {
    for panics in [true, false] {
        for at in ["step", "before", "after", "end"] {
            let (seen, _) = ran(bench(vec![Arc::new(Fails { at, panics })])).await;
            assert_eq!(seen.outcome.text, "done", "{at}");
            let (code, text) = result(&seen);
            let why = match panics {
                true => "it failed: broken",
                false => "it did not answer in time",
            };
            match at {
                "before" => {
                    assert_eq!(code, Some(ToolErrorCode::Denied));
                    assert_eq!(
                        text,
                        format!("error (denied): fails denied the call: {why}")
                    );
                }
                "after" => {
                    assert_eq!(code, None);
                    assert!(text.starts_with("the result is withheld"), "{text}");
                    assert!(text.ends_with(why), "{text}");
                }
                _ => assert_eq!(text, r#"put did {"n":1}"#),
            }
            let most = INTERCEPT_TIMEOUT * 2 + Duration::from_secs(1);
            assert!(seen.took <= most, "{at} {:?}", seen.took);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_wait_for_interceptors() {
    for at in ["step", "before", "after"] {
        let bench = bench(vec![Arc::new(Fails { at, panics: false })]);
        let (seen, _) = bench
            .run_with(|handle| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                handle.cancel();
            })
            .await;
        assert_eq!(seen.outcome.stop_reason, StopReason::Cancelled, "{at}");
        assert!(seen.took < Duration::from_secs(2), "{at} {:?}", seen.took);
    }
}

/// Changes the arguments of every call that it is asked about.
struct Edits(Value);

#[async_trait]
impl Approver for Edits {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::answered(question, "ada", AnswerValue::value(self.0.clone()))
    }
}

/// Denies calls with these arguments.
struct Denies(Value);

#[async_trait]
impl Interceptor for Denies {
    fn name(&self) -> &str {
        "guard"
    }

    async fn before_tool(&self, call: &GateRequest) -> CallDecision {
        match call.arguments == self.0 {
            true => CallDecision::Deny {
                reason: "not these".to_owned(),
            },
            false => CallDecision::Allow,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interceptor_denies_what_a_person_made_of_a_call() {
    let mut bench = bench(vec![Arc::new(Denies(json!({"n": 2})))]);
    bench.gate = Arc::new(AskAlways);
    bench.approver = Arc::new(Edits(json!({"n": 2})));
    let (seen, records) = ran(bench).await;
    let text = "error (denied): guard denied the call: not these".to_owned();
    assert_eq!(result(&seen), (Some(ToolErrorCode::Denied), text));
    assert!(!kinds(&records).contains(&"tool_started"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_no_interceptor_was_asked_about_is_asked_about_before_it_runs() {
    let before = bench(vec![]);
    let (_, records) = ran(before).await;
    let judged = kinds(&records).iter().position(|it| *it == "gate_judged");
    let cut_off = records[..=judged.unwrap()].to_vec();
    let resumed = bench(vec![Arc::new(Denies(json!({"n": 1})))])
        .resume(cut_off)
        .await;
    let (code, _) = result(&resumed);
    assert_eq!(code, Some(ToolErrorCode::Denied));
}
