//! Tests: what happens in a session, as entries of the conversation.

use super::*;
use rondo_types::{
    CompactionKind, ErrorClass, InDoubtDecision, ModelError, Outcome, SessionId, TurnId,
};

fn shown(story: &Story) -> Vec<String> {
    let mut all: Vec<String> = story.transcript.latest().map(|it| it.1.source()).collect();
    all.reverse();
    all
}

fn happens(story: &mut Story, bodies: impl IntoIterator<Item = EventBody>) {
    let limits = rondo_core::profile::builtin("default").unwrap().limits;
    let profile = story
        .profile
        .clone()
        .unwrap_or_else(|| "default".to_owned());
    let init = EventBody::Init(Box::new(InitEvent {
        schema_version: 1,
        model: "localhost/any".to_owned(),
        fallbacks: Vec::new(),
        profile,
        limits,
        tools: Default::default(),
    }));
    for (seq, body) in (0..).zip([init].into_iter().chain(bodies)) {
        let event = Box::new(TurnEvent {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            seq,
            at: TimeMs(0),
            body,
        });
        story.update(UpdateBody::Turn { event });
    }
}

fn text(text: &str) -> EventBody {
    let text = text.to_owned();
    EventBody::TextDelta { text }
}

fn failed(text: &str, error: ModelError) -> EventBody {
    let mut outcome = Outcome::failed(error);
    outcome.text = text.to_owned();
    outcome.steps = 1;
    EventBody::Result(Box::new(ResultEvent::from_outcome(&outcome)))
}

#[test]
fn failures_and_calls_that_a_crash_interrupted_are_told_in_words() {
    let mut story = Story::default();
    happens(
        &mut story,
        [
            EventBody::RetryScheduled {
                class: ErrorClass::FirstByteTimeout,
                status: None,
                attempt: 1,
                delay_ms: 1_000,
            },
            EventBody::ToolCallInDoubt {
                id: CallId::new("c-1"),
                name: "exec".to_owned(),
                decision: InDoubtDecision::Retry,
                still_running: true,
            },
        ],
    );
    let told = [
        "no reply in time from localhost; retrying in 1.0 s (attempt 2 of 5)",
        "`exec` was running when the turn was cut off: still running, waiting for it",
    ];
    assert_eq!(shown(&story), told);
}

#[test]
fn a_failure_is_marked_says_what_helps_and_does_not_look_like_the_model() {
    let mut story = Story::default();
    let error = ModelError::new(ErrorClass::Quota, "http 402: no money");
    let text =
        "I stopped before I was done: a model request failed.\n\nReason: http 402: no money.";
    happens(&mut story, [failed(text, error)]);
    let entries = story.transcript.latest().map(|it| it.1);
    let bad = entries.filter_map(|it| match it {
        Entry::Note(Tone::Bad, text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(bad.collect::<Vec<_>>(), ["http 402: no money"]);
    assert_eq!(
        shown(&story),
        [
            "http 402: no money",
            "check the account's plan and billing at the provider",
            "1 step · 0.0 s"
        ]
    );
}

#[test]
fn the_text_of_a_cut_stream_is_shown_once() {
    let mut story = Story::default();
    let error = ModelError::new(ErrorClass::Network, "the response ended early");
    let built = "I stopped before I was done: a model request failed.\n\nReason: the response ended early.\n\nSome words.";
    let step = EventBody::StepStarted { step: 1 };
    happens(
        &mut story,
        [step, text("Some words."), failed(built, error)],
    );
    assert_eq!(
        shown(&story),
        [
            "Some words.",
            "the response ended early",
            "the connection was lost in the middle of the reply; ask again",
            "1 step · 0.0 s"
        ]
    );
}

#[test]
fn asking_again_is_said_only_if_the_model_is_asked_again() {
    let mut story = Story::default();
    let rejected = || EventBody::ReplyRejected {
        reason: "no JSON".to_owned(),
    };
    let error = ModelError::new(ErrorClass::Protocol, "no JSON");
    happens(
        &mut story,
        [
            rejected(),
            EventBody::StepStarted { step: 2 },
            rejected(),
            failed("I stopped.", error),
        ],
    );
    let shown = shown(&story);
    assert_eq!(shown[0], "the reply cannot be used (no JSON); asking again");
    assert_eq!(shown.len(), 3, "{shown:?}");
}

#[test]
fn my_21_the_screen_listens_to_agent_events_and_to_words() {
    let mut story = Story {
        profile: Some(REACT.to_owned()),
        ..Story::default()
    };
    let at = TimeMs(0);
    story.told("plain words".to_owned().into(), at);
    story.told(AgentEvent::Thought("I look.".to_owned()).into(), at);
    let call = AgentEvent::ToolCall {
        name: "execute_command".to_owned(),
        args: "{\"command\": \"ls -la\"}".to_owned(),
    };
    story.told(call.into(), at);
    let line = story.activity.line(0, true, at, ("", 80));
    assert_eq!(line.as_deref(), Some("· Executing: `ls -la`..."));
    story.told(AgentEvent::ToolOutput("x".to_owned()).into(), at);
    let line = story.activity.line(0, true, at, ("", 80));
    assert_eq!(line.as_deref(), Some("· MyLM is thinking..."));
    story.told(AgentEvent::Error("no".to_owned()).into(), at);
    story.told(AgentEvent::FinalResponse("Done.".to_owned()).into(), at);
    assert_eq!(shown(&story), ["plain words", "I look.", "no", "Done."]);
}

#[test]
fn what_streamed_before_a_call_of_the_design_becomes_a_thought() {
    let mut story = Story {
        profile: Some(REACT.to_owned()),
        ..Story::default()
    };
    let call = EventBody::ToolCallPending {
        id: CallId::new("c"),
        name: "execute_command".to_owned(),
        arguments: serde_json::json!({"command": "ls"}),
    };
    happens(
        &mut story,
        [text("I "), text("look."), call, text("It is x.")],
    );
    assert_eq!(
        shown(&story),
        ["I look.", "execute_command ls\n", "It is x."]
    );
}

#[test]
fn a_long_command_that_runs_leaves_room_for_its_time_and_the_key_that_stops_it() {
    let command = serde_json::json!({"command": "x".repeat(100)});
    let card = Card::call("exec", &command);
    let activity = Activity::of_call(&card, false, TimeMs(0));
    let line = activity.line(0, true, TimeMs(65_000), (" · Esc stops", 40));
    let line = line.unwrap();
    assert_eq!(line, "· Running exec x…  1 min 5 s · Esc stops");
}

#[test]
fn of_a_call_that_never_ran_no_time_is_said() {
    let mut story = Story::default();
    let id = CallId::new("c");
    let call = EventBody::ToolCallPending {
        id: id.clone(),
        name: "exec".to_owned(),
        arguments: serde_json::json!({"command": "ls"}),
    };
    let finished = serde_json::json!({"type": "tool_call_finished", "id": "c", "ok": false, "code": "denied",
        "result": "error (denied): no", "truncated": false, "duration_ms": 0});
    let finished = serde_json::from_value(finished).unwrap();
    happens(&mut story, [call, finished]);
    let entry = story.transcript.latest().next().unwrap().1;
    let Entry::Card(card) = entry else {
        panic!("{entry:?}")
    };
    assert_eq!(card.end.as_ref().unwrap().took_ms, None);
}

#[test]
fn a_turn_that_only_sums_up_ends_with_its_summary_and_no_failure() {
    let mut story = Story::default();
    let compacted = EventBody::Compacted {
        replaced: 48,
        how: CompactionKind::Summarised,
        model: None,
        reason: None,
    };
    let outcome = Outcome {
        text: "They spoke of fruit.".to_owned(),
        stop_reason: StopReason::Complete,
        ..Outcome::failed(ModelError::new(ErrorClass::Network, "none"))
    };
    let mut result = ResultEvent::from_outcome(&outcome);
    result.error = None;
    happens(&mut story, [compacted, EventBody::Result(Box::new(result))]);
    let told = shown(&story);
    assert!(
        told.contains(&"They spoke of fruit.".to_owned()),
        "{told:?}"
    );
    assert!(!told.join("\n").contains("no answer"), "{told:?}");
    assert!(story.only_summed_up());
}
