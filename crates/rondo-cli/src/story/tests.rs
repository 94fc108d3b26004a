//! Tests: a recorded session told as data, Markdown and a page.

use super::*;
use rondo_core::ports::{CellEnding, Record, RecordBody};
use rondo_runtime::view::{Fold, TurnView};
use rondo_types::{
    CallId, Candidate, Message, ModelInfo, Origin, Part, Price, Recovery, Reply, StopReason,
    TimeMs, ToolCall, ToolErrorCode, ToolOutcome, TurnId, Usage,
};
use serde_json::{Value, json};

fn reply(parts: Vec<Part>) -> RecordBody {
    let candidate = Candidate {
        parts,
        ..Candidate::default()
    };
    RecordBody::ModelReplied {
        reply: Box::new(Reply {
            candidates: vec![candidate],
            usage: Some(Usage {
                input: 100,
                output: 10,
                ..Usage::default()
            }),
            ..Reply::default()
        }),
    }
}

fn call(name: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId::new("x"),
        wire_id: None,
        name: name.into(),
        arguments: r#"{"n":1}"#.into(),
        complete: true,
        opaque: None,
    })
}

fn requested() -> RecordBody {
    serde_json::from_value(json!({
        "kind": "model_requested", "model": "p/m", "request_hash": "", "attempt": 0,
    }))
    .unwrap()
}

fn started() -> [RecordBody; 2] {
    let profile = rondo_core::profile::builtin("default").unwrap();
    let began = json!({
        "kind": "turn_started", "profile": profile, "seed": 1, "tools_hash": "",
        "turn_number": 1,
    });
    let model = ModelInfo {
        origin: Origin {
            dialect: "d".into(),
            provider: "p".into(),
            model: "m".into(),
        },
        streaming: true,
        price: Some(Price {
            input: 1_000_000,
            output: 2_000_000,
            cache_read: 0,
            cache_write: 0,
        }),
        context_tokens: None,
    };
    let environment = RecordBody::TurnEnvironment {
        system: vec![].into(),
        tools: Default::default(),
        models: vec![model],
        response_schema: None,
    };
    [serde_json::from_value(began).unwrap(), environment]
}

fn story() -> (Story, TurnView) {
    let id = CallId::new("r1");
    let mut bodies = started().to_vec();
    bodies.extend([
        RecordBody::UserMessage {
            message: Message::user("What <b>is</b> it?"),
        },
        requested(),
        requested(),
        reply(vec![Part::text("I look."), call("look")]),
        RecordBody::ToolStarted {
            call_id: id.clone(),
            name: "look".into(),
            arguments: json!({"n": 1}),
            recovery: Recovery::ReadOnly,
            idempotency_key: "k".into(),
            evidence: None,
        },
        RecordBody::ToolFinished {
            call_id: id,
            outcome: ToolOutcome::error(ToolErrorCode::Failed, "no ``` here"),
            duration_ms: 1234,
        },
        RecordBody::ApprovalRequested {
            call_id: CallId::new("r2"),
            prompt: "run `a & b` or `not?".into(),
        },
        requested(),
        reply(vec![Part::text("Nothing & all.")]),
        RecordBody::Final {
            stop_reason: StopReason::Complete,
            text: "Nothing & all.".into(),
            degraded: false,
            process: None,
        },
    ]);
    let steps = [0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2];
    let records = (0..)
        .zip(bodies)
        .zip(steps)
        .map(|((at, body), step)| Record {
            turn: TurnId::new("t"),
            step,
            at_ms: TimeMs(at * 100),
            body,
        });
    let mut fold = Fold::default();
    for record in records {
        assert_eq!(fold.record(&record), None);
    }
    let story = Story {
        session: "s-1".into(),
        title: "<title>".into(),
        directory: "/a & b".into(),
        is_script: false,
    };
    (story, fold.end().unwrap())
}

fn whole(format: StoryFormat) -> String {
    let (story, turn) = story();
    story.head(format) + &shown(&turn, format, true) + &story.tail(format, &[], &[])
}

#[test]
fn as_data_it_is_one_object() {
    let (story, turn) = story();
    let text = whole(StoryFormat::Json);
    let mut data: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(data["turns"][0]["ending"]["text"], "Nothing & all.");
    assert_eq!(data["title"], "<title>");
    let format = StoryFormat::Json;
    let two = [shown(&turn, format, true), shown(&turn, format, false)].concat();
    let text = story.head(format) + &two + &story.tail(format, &[], &[]);
    data = serde_json::from_str(&text).unwrap();
    assert_eq!(data["turns"].as_array().unwrap().len(), 2);
}

#[test]
fn records_become_steps_with_their_figures() {
    let (_, turn) = story();
    assert_eq!((turn.took_ms, turn.usage.input), (1100, 200));
    let cost = turn.cost_usd.unwrap();
    assert!((cost - 2.0 * turn.steps[0].cost_usd.unwrap()).abs() < 1e-12 && cost > 0.0);
    let steps: Vec<_> = turn
        .steps
        .iter()
        .map(|it| (it.number, it.requests, it.replied_after_ms, it.items.len()))
        .collect();
    assert_eq!(steps, [(1, 2, Some(200), 4), (2, 1, Some(100), 1)]);
    assert_eq!(turn.ending.as_ref().unwrap().text, "Nothing & all.");
}

#[test]
fn markdown_has_what_was_said_and_fences_that_hold() {
    let text = whole(StoryFormat::Markdown);
    assert!(text.starts_with("# <title>\n\nSession `s-1` in `/a & b`\n"));
    assert!(text.contains("**User**\n\nWhat <b>is</b> it?\n"));
    assert!(text.contains("`look` failed after 1.2 s:\n\n````\nno ``` here\n````\n"));
    assert!(!text.contains("**Answer**"), "it was said: {text}");
}

#[test]
fn a_page_holds_no_markup_of_others() {
    let page = whole(StoryFormat::Html);
    assert!(page.contains("<title>&lt;title&gt;</title>"));
    assert!(page.contains("What &lt;b&gt;is&lt;/b&gt; it?"));
    assert!(page.contains("/a &amp; b"));
    assert!(!page.contains("<b>") && !page.contains("<script"));
    assert!(page.contains("asked: run <code>a &amp; b</code> or `not?"));
}

fn cell(code: &str, ending: Option<CellEnding>) -> Vec<Record> {
    let started = RecordBody::CellStarted {
        code: code.into(),
        changed: None,
    };
    let finished = ending.map(|ending| RecordBody::CellFinished {
        ending,
        stdout: "out\n".into(),
        stderr: String::new(),
        duration_ms: 5,
        is_restarted: false,
        has_read_input: false,
    });
    let bodies = std::iter::once(started).chain(finished);
    let record = |body| Record {
        turn: TurnId::new(""),
        step: 0,
        at_ms: TimeMs(7),
        body,
    };
    bodies.map(record).collect()
}

#[test]
fn cells_stand_behind_the_turn_that_they_followed() {
    let value_repr = Some("42".to_owned());
    let mut records = cell("6 * 7", Some(CellEnding::Returned { value_repr }));
    records.push(Record {
        turn: TurnId::new("t"),
        step: 0,
        at_ms: TimeMs(9),
        body: started()[0].clone(),
    });
    records.extend(cell("while <b>: pass", None));
    let mut fold = Fold::default();
    let mut turns: Vec<TurnView> = records.iter().filter_map(|it| fold.record(it)).collect();
    turns.extend(fold.end());
    let numbers: Vec<_> = turns.iter().map(|it| (it.number, it.cells.len())).collect();
    assert_eq!(numbers, [(0, 1), (1, 1)]);
    let text = shown(&turns[0], StoryFormat::Markdown, true);
    assert_eq!(
        text,
        "\n## Python\n\n```\n6 * 7\n```\n\n```\nout\n42\n```\n"
    );
    let page = shown(&turns[1], StoryFormat::Html, false);
    assert!(page.contains("<pre>while &lt;b&gt;: pass</pre>"), "{page}");
    assert!(page.contains("[its end is not recorded]"), "{page}");
    let data: Value = serde_json::from_str(&shown(&turns[0], StoryFormat::Json, true)).unwrap();
    assert_eq!(data["cells"][0]["code"], "6 * 7");
}

#[test]
fn a_call_that_never_began_is_named() {
    let mut bodies = started().to_vec();
    bodies.extend([
        requested(),
        reply(vec![call("fly")]),
        RecordBody::CallResolved {
            call_id: CallId::new("x"),
            outcome: ToolOutcome::error(ToolErrorCode::UnknownTool, "there is no tool `fly`"),
        },
    ]);
    let mut fold = Fold::default();
    for body in bodies {
        fold.record(&Record {
            turn: TurnId::new("t"),
            step: 1,
            at_ms: TimeMs(0),
            body,
        });
    }
    let text = shown(&fold.end().unwrap(), StoryFormat::Markdown, true);
    assert!(text.contains("`fly` failed (unknown tool) after"), "{text}");
}
