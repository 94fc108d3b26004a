//! Older messages make room: by a summary, without one, and if nothing but one turn is there.

use super::sim::{Ran, Say, Sim, calls, empty, handle, reply, text};
use crate::compaction::{BYTES_PER_TOKEN, transcript_bytes};
use crate::machine::{Action, Input, ModelCall, TurnMachine};
use crate::pairing::is_paired;
use crate::ports::{Purpose, RecordBody, Verdict};
use proptest::prelude::*;
use rondo_types::{
    CallId, CompactionKind, ErrorClass, EventBody, FinishReason, Message, ModelError, Part, Reply,
    StopReason, TimeMs, ToolContent, ToolOutcome, ToolResult, Transcript, Usage,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

fn say(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text))
}

/// Questions and answers of so many bytes each.
fn conversation(groups: usize, bytes: usize) -> Transcript {
    let group = |n: usize| {
        let filler = "x".repeat(bytes);
        [
            say(&format!("q{n} {filler}")),
            Arc::new(Message::assistant(format!("a{n} {filler}"))),
        ]
    };
    (0..groups).flat_map(group).collect()
}

fn fail(class: ErrorClass) -> Say {
    Say::Fail {
        error: ModelError::new(class, "it was too much"),
        partial: "",
        committed: false,
    }
}

fn crowded(script: Vec<Say>) -> Sim {
    let mut sim = Sim::new("default", script);
    sim.history = conversation(7, 300);
    sim.context_tokens = Some(2_000);
    sim
}

/// From a provider that counts no tokens, so that they are estimated.
fn uncounted(say: Say) -> Say {
    match say {
        Say::Reply(reply) => Say::Reply(Reply {
            usage: None,
            ..reply
        }),
        failure @ Say::Fail { .. } => failure,
    }
}

fn compactions(ran: &Ran) -> Vec<(u32, CompactionKind)> {
    let events = ran.events.iter();
    let compacted = events.filter_map(|event| match event {
        EventBody::Compacted { replaced, how, .. } => Some((*replaced, *how)),
        _ => None,
    });
    compacted.collect()
}

fn reasons(ran: &Ran) -> Vec<String> {
    let reason = |event: &EventBody| match event {
        EventBody::Compacted { reason, .. } => reason.clone(),
        _ => None,
    };
    ran.events.iter().filter_map(reason).collect()
}

fn messages(ran: &Ran, request: usize) -> Vec<String> {
    let messages = &ran.requests[request].request.messages;
    messages.iter().map(|message| message.text()).collect()
}

#[test]
fn older_groups_are_summed_up_once_and_the_turn_goes_on_from_the_summary() {
    let ran = crowded(vec![text("they spoke of x"), text("done")]).run();
    assert_eq!(compactions(&ran), [(10, CompactionKind::Summarised)]);
    let (summary, step) = (&ran.requests[0], &ran.requests[1]);
    assert_eq!(
        (summary.purpose, step.purpose),
        (Purpose::Summary, Purpose::Step)
    );
    assert!(summary.request.tools.is_empty());
    assert!(messages(&ran, 0)[0].starts_with("q0 "));
    let sent = messages(&ran, 1);
    assert!(sent[0].ends_with("they spoke of x"));
    assert!(sent[1].starts_with("q5 ") && sent[4].starts_with("a6 "));
    assert_eq!(sent[5..], ["q"]);
    assert_eq!(ran.outcome.text, "done");
    // The summary is a step, with its usage.
    assert_eq!((ran.outcome.steps, ran.outcome.usage.input), (2, 200));
    let shown = ran.events.iter();
    let shown = shown.filter(|it| matches!(it, EventBody::TextDelta { text } if text != "done"));
    assert_eq!(shown.count(), 0);
}

#[test]
fn a_turn_that_is_only_for_it_leaves_the_summary_alone() {
    for context_tokens in [None, Some(200_000)] {
        let mut sim = crowded(vec![text("they spoke of x")]);
        sim.context_tokens = context_tokens;
        sim.profile.compaction.only = true;
        let ran = sim.run();
        assert_eq!(compactions(&ran), [(15, CompactionKind::Summarised)]);
        assert_eq!(ran.requests.len(), 1);
        assert_eq!(ran.outcome.text, "they spoke of x");
        assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
        assert_eq!(ran.outcome.transcript.len(), 1);
        assert!(
            ran.outcome.transcript[0]
                .text()
                .ends_with("they spoke of x")
        );
    }
}

#[test]
fn a_turn_that_is_only_for_it_and_fails_changes_nothing() {
    for summary in [fail(ErrorClass::Auth), empty()] {
        let mut sim = crowded(vec![summary]);
        sim.profile.compaction.only = true;
        let before = sim.history.clone();
        let ran = sim.run();
        assert_eq!(ran.outcome.transcript, before);
        assert_eq!(
            compactions(&ran),
            [],
            "nothing of the conversation was left out"
        );
        assert!(!ran.outcome.answered && ran.outcome.error.is_some());
    }
}

#[test]
fn below_the_threshold_nothing_happens() {
    // Room 1,500 tokens: 80 % of them are 3,600 bytes.
    let fits = |bytes| {
        let mut sim = crowded(vec![text("a"), text("b")]);
        sim.history = vec![say("old"), say(&"x".repeat(bytes))];
        compactions(&sim.run()).is_empty()
    };
    let turning = (0..3_700).rev().find(|bytes| fits(*bytes)).unwrap();
    assert!((3_500..3_600).contains(&turning), "{turning}");
    assert!(!fits(turning + 1));
}

#[test]
fn a_summary_that_cannot_be_had_is_done_without() {
    let long = text(&"y".repeat(9_000));
    let cut_off = Say::Reply(reply(vec![Part::text("half")], FinishReason::Length));
    let refused = Say::Reply(reply(vec![Part::text("no")], FinishReason::Refusal));
    let cases = [
        (empty(), "it was empty"),
        (long, "too long"),
        (cut_off, "too long"),
        (refused, "refused"),
        (calls(&[("look", "{}")]), "called tools"),
        (fail(ErrorClass::Auth), "it was too much"),
        (fail(ErrorClass::ContextTooLong), "it was too much"),
        (fail(ErrorClass::StepTimeout), "it was too much"),
    ];
    for (summary, reason) in cases {
        let ran = crowded(vec![summary, text("done")]).run();
        assert_eq!(
            compactions(&ran),
            [(10, CompactionKind::Dropped)],
            "{reason}"
        );
        assert!(reasons(&ran)[0].contains(reason), "{:?}", reasons(&ran));
        let sent = messages(&ran, 1);
        assert!(sent[0].contains("10 messages before this one were left out"));
        assert_eq!(sent.len(), 6);
        assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
        assert_eq!(ran.outcome.error, None);
    }
}

#[test]
fn a_summary_that_takes_too_long_leaves_half_of_the_turns_time() {
    let mut sim = crowded(vec![text("late"), text("done")]);
    sim.profile.limits.turn_timeout = Some(Duration::from_secs(40));
    sim.profile.limits.reserve_final = false;
    let mut first = true;
    sim.model_time = Duration::ZERO;
    let mut late = 0;
    let ran = {
        sim.model = Box::new(move |call| {
            if std::mem::take(&mut first) {
                late = call.end.unwrap().at.0;
                return fail(ErrorClass::StepTimeout);
            }
            assert_eq!(late, 1_000_000 + 20_000);
            text("done")
        });
        sim.run()
    };
    assert_eq!(compactions(&ran), [(10, CompactionKind::Dropped)]);
}

#[test]
fn a_failure_that_passes_is_waited_for_as_with_any_request() {
    let busy = Say::Fail {
        error: ModelError {
            retryable: true,
            ..ModelError::new(ErrorClass::Overloaded, "busy")
        },
        partial: "",
        committed: false,
    };
    let ran = crowded(vec![busy, text("sum"), text("done")]).run();
    assert_eq!(compactions(&ran), [(10, CompactionKind::Summarised)]);
    assert_eq!(ran.waits.len(), 1);
    assert_eq!(ran.outcome.steps, 2);
}

#[test]
fn a_request_that_was_refused_for_its_length_is_made_shorter_where_nobody_knew_the_bound() {
    let mut sim = crowded(vec![
        fail(ErrorClass::ContextTooLong),
        text("sum"),
        text("done"),
    ]);
    sim.context_tokens = None;
    let ran = sim.run();
    assert_eq!(compactions(&ran).len(), 1);
    assert_eq!(ran.outcome.text, "done");
    assert_eq!(ran.outcome.steps, 3);
}

#[test]
fn refusals_without_end_end_the_turn_with_the_error() {
    let mut sim = Sim::always("default", |call| match call.purpose {
        Purpose::Step => fail(ErrorClass::ContextTooLong),
        Purpose::Summary => text("sum"),
    });
    sim.history = conversation(40, 300);
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    let error = ran.outcome.error.unwrap();
    assert_eq!(error.class, ErrorClass::ContextTooLong);
    assert!(ran.requests.len() <= 8, "{}", ran.requests.len());
}

#[test]
fn what_is_summed_up_fits_too_without_its_oldest_groups_if_it_must() {
    let mut sim = crowded(vec![text("sum"), text("done")]);
    sim.history = conversation(12, 300);
    let ran = sim.run();
    assert_eq!(compactions(&ran), [(20, CompactionKind::Summarised)]);
    let asked = messages(&ran, 0);
    assert!(asked[0].starts_with("q4 "));
    assert!(asked.last().unwrap().starts_with("Sum up"));
}

#[test]
fn an_earlier_summary_stays_when_what_follows_it_is_left_out() {
    let ran = crowded(vec![text("first"), text("done")]).run();
    let mut again = crowded(vec![empty(), text("done")]);
    again.history = ran.outcome.transcript;
    again.history.extend(conversation(10, 300));
    let ran = again.run();
    let sent = messages(&ran, 1);
    assert!(sent[0].ends_with("first"));
    assert!(sent[1].contains("were left out"));
}

#[test]
fn one_turn_that_is_too_long_by_itself_keeps_its_question_and_its_latest_results() {
    let mut script: Vec<Say> = (0..30)
        .map(|n| uncounted(calls(&[("look", &format!(r#"{{"n":{n}}}"#))])))
        .collect();
    script.push(text("done"));
    let mut sim = Sim::new("default", script);
    sim.context_tokens = Some(4_000);
    let mut n = 0;
    sim.tool = Box::new(move |_| {
        n += 1;
        ToolOutcome::text(format!("result {n} {}", "z".repeat(3_000)))
    });
    let ran = sim.run();
    assert_eq!(ran.outcome.text, "done");
    assert!(
        compactions(&ran)
            .iter()
            .any(|it| it.1 == CompactionKind::Cut)
    );
    let last = &ran.requests.last().unwrap().request.messages;
    assert_eq!(last[0].text(), "q");
    let results = last.last().unwrap().results().next().unwrap();
    assert!(results.content.to_text().starts_with("result 30 "));
    for call in &ran.requests {
        assert!(is_paired(&call.request.messages));
        assert!(transcript_bytes(&call.request.messages) <= 3_000 * BYTES_PER_TOKEN);
    }
}

#[test]
fn one_result_that_is_larger_than_the_context_keeps_its_beginning_and_end() {
    let mut sim = Sim::new("default", vec![calls(&[("look", "{}")]), text("done")]);
    sim.context_tokens = Some(2_000);
    sim.tool = Box::new(|_| ToolOutcome::text(format!("head{}tail", "z".repeat(90_000))));
    let ran = sim.run();
    let result = ran.requests[1].request.messages[2]
        .results()
        .next()
        .unwrap();
    let shown = result.content.to_text();
    assert!(shown.starts_with("head") && shown.ends_with("tail"));
    assert!(shown.len() < 4_500, "{}", shown.len());
}

#[test]
fn a_profile_without_summaries_leaves_out_and_one_that_is_off_does_nothing() {
    let mut sim = crowded(vec![text("done")]);
    sim.profile.compaction.summary_tokens = 0;
    assert_eq!(compactions(&sim.run()), [(10, CompactionKind::Dropped)]);
    let mut off = crowded(vec![fail(ErrorClass::ContextTooLong)]);
    off.profile.compaction.at_percent = 0;
    let ran = off.run();
    assert_eq!(compactions(&ran), []);
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
}

#[test]
fn hub_25_a_turn_begins_with_fifty_messages_of_the_past_in_whole_groups() {
    for (groups, begun_with) in [(25, 51), (26, 51), (30, 51)] {
        let mut sim = Sim::new("hub", vec![text("done")]);
        sim.history = conversation(groups, 1);
        let ran = sim.run();
        assert_eq!(ran.requests[0].request.messages.len(), begun_with);
    }
    let mut sim = Sim::new("hub", vec![text("done")]);
    sim.history = conversation(25, 1);
    sim.history.push(say("and"));
    let first = messages(&sim.run(), 0)[0].clone();
    assert!(first.starts_with("q1 "), "{first}");
}

#[test]
fn with_one_step_left_nothing_is_spent_on_a_summary() {
    let mut sim = crowded(vec![text("done")]);
    sim.profile.limits.max_steps = 2;
    let ran = sim.run();
    assert_eq!(ran.requests[0].purpose, Purpose::Step);
}

/// Script of a property.
#[derive(Debug, Clone)]
struct Script {
    window: u64,
    is_known: bool,
    /// Bytes of a token, by the provider's own count.
    density: u64,
    history: Vec<(u16, Option<u16>)>,
    moves: Vec<u8>,
    summaries: Vec<u8>,
    results: Vec<u16>,
    steer_at: usize,
}

fn script() -> impl Strategy<Value = Script> {
    (
        (1_500_u64..6_000, any::<bool>(), 2_u64..5),
        prop::collection::vec((0_u16..900, prop::option::of(0_u16..4_000)), 0..30),
        prop::collection::vec(0_u8..8, 1..20),
        prop::collection::vec(0_u8..8, 1..5),
        prop::collection::vec(0_u16..20_000, 1..6),
        0_usize..40,
    )
        .prop_map(
            |((window, is_known, density), history, moves, summaries, results, steer_at)| Script {
                window,
                is_known,
                density,
                history,
                moves,
                summaries,
                results,
                steer_at,
            },
        )
}

fn history_of(script: &Script) -> Transcript {
    let mut history = Transcript::new();
    for (n, (bytes, result)) in script.history.iter().enumerate() {
        history.push(say(&"h".repeat(usize::from(*bytes))));
        if let Some(bytes) = result {
            let id = CallId::generated(7, n as u32, 0);
            let Part::ToolCall(mut call) = super::sim::call_part("look", "{}") else {
                unreachable!()
            };
            call.id = id.clone();
            let parts = vec![Part::ToolCall(call)];
            let asked = Message {
                parts,
                ..Message::assistant("")
            };
            history.push(Arc::new(asked));
            history.push(Arc::new(Message::tool_results(vec![ToolResult {
                call_id: id,
                wire_id: None,
                name: "look".into(),
                error: None,
                content: ToolContent::Text("r".repeat(usize::from(*bytes))),
                blocks: vec![],
                synthetic: false,
            }])));
        }
        history.push(Arc::new(Message::assistant("fine")));
    }
    history
}

struct Play {
    script: Script,
    machine: TurnMachine,
    inputs: VecDeque<Input>,
    requests: Vec<ModelCall>,
    /// The transcript, from what was recorded.
    folded: Transcript,
    steps: usize,
}

impl Play {
    fn new(script: Script) -> Self {
        let mut sim = Sim::new("default", vec![]);
        sim.context_tokens = script.is_known.then_some(script.window);
        sim.profile.limits.max_steps = 30;
        let history = history_of(&script);
        let begin = Input::Begin {
            history: history.clone(),
            message: Message::user("the question").into(),
        };
        Self {
            machine: TurnMachine::new(sim.config()),
            script,
            inputs: VecDeque::from([begin]),
            requests: vec![],
            folded: history,
            steps: 0,
        }
    }

    fn pick<T: Copy>(list: &[T], at: usize) -> T {
        list[at % list.len()]
    }

    /// Count of tokens by the provider.
    fn tokens(&self, call: &ModelCall) -> u64 {
        transcript_bytes(&call.request.messages) / self.script.density
    }

    fn reply_to(&mut self, call: &ModelCall) -> Input {
        self.steps += 1;
        let tokens = self.tokens(call);
        if tokens > self.script.window {
            return failed(ErrorClass::ContextTooLong);
        }
        let usage = Usage {
            input: tokens,
            output: 10,
            ..Usage::default()
        };
        let reply = |part: Part, reason| Reply {
            usage: Some(usage),
            ..reply(vec![part], reason)
        };
        let reply = match call.purpose {
            Purpose::Summary => match Self::pick(&self.script.summaries, self.steps) {
                0 => return failed(ErrorClass::Auth),
                1 => return failed(ErrorClass::StepTimeout),
                2 => reply(Part::text(""), FinishReason::Stop),
                3 => reply(Part::text("s".repeat(50_000)), FinishReason::Stop),
                4 => reply(Part::text("s"), FinishReason::Length),
                _ => reply(Part::text("s".repeat(300)), FinishReason::Stop),
            },
            Purpose::Step => match Self::pick(&self.script.moves, self.steps) {
                0 => reply(Part::text("done"), FinishReason::Stop),
                1 => reply(Part::text(""), FinishReason::Stop),
                _ => {
                    let arguments = format!(r#"{{"n":{}}}"#, self.steps);
                    let part = super::sim::call_part("look", &arguments);
                    reply(part, FinishReason::ToolCalls)
                }
            },
        };
        Input::Reply { reply }
    }

    fn run(mut self) -> (Vec<ModelCall>, rondo_types::Outcome, Script) {
        for fed in 0..1_000 {
            let input = match fed == self.script.steer_at && fed > 0 {
                true => Input::Steer {
                    message: "and this".into(),
                },
                false => self.inputs.pop_front().unwrap_or(Input::Time),
            };
            for action in handle(&mut self.machine, TimeMs(1_000), input) {
                match action {
                    Action::CallModel(call) => {
                        let input = self.reply_to(&call);
                        self.inputs.push_back(input);
                        self.requests.push(call);
                    }
                    Action::CheckGate(calls) => {
                        self.inputs.extend(calls.iter().map(|call| Input::Gate {
                            call_id: call.call_id.clone(),
                            verdict: Verdict::Allow,
                        }))
                    }
                    Action::RunTools(calls) => {
                        for call in calls {
                            let bytes = Self::pick(&self.script.results, fed);
                            self.inputs.push_back(Input::ToolFinished {
                                call_id: call.call_id,
                                outcome: ToolOutcome::text("r".repeat(usize::from(bytes))),
                                duration_ms: 1,
                            });
                        }
                    }
                    Action::Record(body) => {
                        if let RecordBody::Compacted(compaction) = *body {
                            compaction.apply(&mut self.folded);
                        }
                    }
                    Action::Done(outcome) => return (self.requests, *outcome, self.script),
                    Action::CheckRequest(_)
                    | Action::EndRequest { .. }
                    | Action::Ask { .. }
                    | Action::EndCall { .. }
                    | Action::RepeatCall(_)
                    | Action::JudgeAgain(_)
                    | Action::AskAgain { .. }
                    | Action::Answer { .. }
                    | Action::Settle { .. }
                    | Action::Emit(_)
                    | Action::Abort
                    | Action::Wait { .. } => {}
                }
            }
        }
        panic!("no end after {} requests", self.requests.len());
    }
}

fn failed(class: ErrorClass) -> Input {
    Input::ReplyFailed {
        error: ModelError::new(class, "scripted"),
        partial: String::new(),
        committed: false,
        received: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_fits_its_model_pairs_its_calls_and_ends(script in script()) {
        let (requests, outcome, script) = Play::new(script).run();
        prop_assert!(is_paired(&outcome.transcript));
        prop_assert!(outcome.steps <= 30);
        prop_assert_ne!(outcome.stop_reason, StopReason::Error, "{:?}", outcome.error);
        for call in &requests {
            prop_assert!(is_paired(&call.request.messages), "every request pairs its calls");
            let question = |message: &Arc<Message>| {
                !message.synthetic && ["the question", "and this"].contains(&&*message.text())
            };
            let is_step = call.purpose == Purpose::Step;
            prop_assert!(!is_step || call.request.messages.iter().any(question));
            // If the context is known and tokens are as estimated, nothing is ever refused.
            if script.is_known && script.density >= BYTES_PER_TOKEN {
                let bytes = transcript_bytes(&call.request.messages);
                prop_assert!(bytes < script.window * BYTES_PER_TOKEN);
            }
        }
    }
}

/// A question, a call with its result, and an answer.
fn group_with_a_call(n: u32) -> [Arc<Message>; 4] {
    let Part::ToolCall(mut call) = super::sim::call_part("look", "{}") else {
        unreachable!("it makes a call")
    };
    call.id = CallId::generated(n, 1, 0);
    let result = ToolResult {
        call_id: call.id.clone(),
        wire_id: None,
        name: "look".into(),
        error: None,
        content: ToolContent::Text("seen".into()),
        blocks: Vec::new(),
        synthetic: false,
    };
    let asking = Message {
        parts: vec![Part::ToolCall(call)],
        ..Message::assistant("")
    };
    [
        say(&format!("q{n}")),
        Arc::new(asking),
        Arc::new(Message::tool_results(vec![result])),
        Arc::new(Message::assistant(format!("a{n}"))),
    ]
}

#[test]
fn hub_28_a_turn_begins_with_at_most_fifty_messages_and_splits_no_call_from_its_result() {
    // (groups of the past, messages of it that are sent)
    for (groups, kept) in [(12, 48), (13, 48), (14, 48), (20, 48)] {
        let mut sim = Sim::new("hub", vec![text("ok")]);
        sim.history = (0..groups).flat_map(group_with_a_call).collect();
        let ran = sim.run();
        let sent = &ran.requests[0].request.messages;
        assert_eq!(sent.len(), kept + 1, "{groups} groups");
        assert_eq!(sent[0].text(), format!("q{}", groups - 12));
        assert!(is_paired(sent));
    }
    for (past, kept) in [(49, 49), (50, 50), (51, 50), (52, 50)] {
        let mut sim = Sim::new("hub", vec![text("ok")]);
        sim.history = (0..past).map(|n| say(&n.to_string())).collect();
        let ran = sim.run();
        assert_eq!(
            ran.requests[0].request.messages.len(),
            kept + 1,
            "{past} messages"
        );
    }
}

#[test]
fn a_fixed_part_that_fills_the_context_is_told_once_and_no_summary_is_asked_for() {
    let warnings = |ran: &Ran| {
        let text = |it: &EventBody| match it {
            EventBody::Warning { text } => Some(text.clone()),
            _ => None,
        };
        ran.events.iter().filter_map(text).collect::<Vec<_>>()
    };
    let filled = |script: Vec<Say>, bytes: usize| {
        let mut sim = Sim::new("default", script.into_iter().map(uncounted).collect());
        sim.tools[0].description = "x".repeat(bytes);
        sim.context_tokens = Some(8_000);
        sim
    };
    for tokens in [5_800, 7_000, 20_000] {
        let script = vec![
            calls(&[("look", "{}")]),
            calls(&[("look", "{}")]),
            text("ok"),
        ];
        let ran = filled(script, tokens * 3).run();
        assert_eq!(ran.outcome.text, "ok");
        assert_eq!(ran.requests.len(), 3);
        assert!(compactions(&ran).is_empty(), "{:?}", compactions(&ran));
        let told = warnings(&ran);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("8000 tokens that `p/m` reads"), "{told:?}");

        let mut later = filled(vec![text("ok")], tokens * 3);
        later.history = ran.outcome.transcript.clone();
        let ran = later.run();
        assert_eq!((ran.outcome.text.as_str(), warnings(&ran).len()), ("ok", 0));
    }
}
