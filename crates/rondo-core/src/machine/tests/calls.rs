//! Tests: the order of calls and results, limits on calls, denials and edits.

use super::sim::{AnyObject, Say, Sim, call_part, calls, reply, text};
use crate::machine::Input;
use crate::ports::{Approval, Interception, Verdict};
use rondo_types::{
    EventBody, FinishReason, Part, StopReason, TimeMs, ToolContent, ToolErrorCode, ToolOutcome,
    ToolResult,
};
use serde_json::json;

fn results(ran: &super::sim::Ran) -> Vec<ToolResult> {
    ran.outcome
        .transcript
        .iter()
        .flat_map(|message| message.results().cloned())
        .collect()
}

fn codes(ran: &super::sim::Ran) -> Vec<Option<ToolErrorCode>> {
    results(ran).iter().map(|result| result.error).collect()
}

#[test]
fn py_27_py_28_gs_7_calls_run_one_after_another_in_order_and_results_go_back_together() {
    let asked = [
        ("act", r#"{"n":1}"#),
        ("look", r#"{"n":2}"#),
        ("act", r#"{"n":3}"#),
    ];
    let ran = Sim::new("python", vec![calls(&asked), text("done")]).run();
    let order: Vec<_> = ran
        .runs
        .iter()
        .flatten()
        .map(|call| call.arguments["n"].clone())
        .collect();
    assert_eq!(order, [json!(1), json!(2), json!(3)]);
    assert!(ran.runs.iter().all(|run| run.len() == 1));
    assert_eq!(ran.requests[1].request.messages[2].results().count(), 3);
}

#[test]
fn hub_5_hub_14_shared_calls_run_at_once_exclusive_ones_are_barriers_and_results_keep_call_order() {
    let asked = [
        ("look", r#"{"n":1}"#),
        ("look", r#"{"n":2}"#),
        ("act", r#"{"n":3}"#),
        ("look", r#"{"n":4}"#),
        ("look", r#"{"n":5}"#),
    ];
    let ran = Sim::new("hub", vec![calls(&asked), text("done")]).run();
    let widths: Vec<_> = ran.runs.iter().map(Vec::len).collect();
    assert_eq!(widths, [2, 1, 2]);
    let ids: Vec<_> = results(&ran)
        .into_iter()
        .map(|result| result.call_id)
        .collect();
    let asked_ids: Vec<_> = ran.outcome.transcript[1]
        .tool_calls()
        .map(|call| call.id.clone())
        .collect();
    assert_eq!(ids, asked_ids);
}

#[test]
fn py_33_fa_24_hub_8_unknown_tools_and_bad_arguments_are_results_and_the_loop_goes_on() {
    let asked = [("nope", "{}"), ("look", "[1]"), ("look", "{}")];
    let ran = Sim::new("python", vec![calls(&asked), text("done")]).run();
    assert_eq!(
        codes(&ran),
        [
            Some(ToolErrorCode::UnknownTool),
            Some(ToolErrorCode::InvalidArgs),
            None
        ]
    );
    let ToolContent::Json(unknown) = &results(&ran)[0].content else {
        panic!("an envelope")
    };
    assert_eq!(unknown["error"]["code"], "unknown_function");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.runs.len(), 1);
}

#[test]
fn gs_15_a_failing_tool_is_a_result_for_the_model() {
    let mut sim = Sim::new("shell", vec![calls(&[("act", "{}")]), text("done")]);
    sim.tool =
        Box::new(|_| ToolOutcome::error(ToolErrorCode::Failed, "Error executing command: x"));
    let ran = sim.run();
    assert_eq!(
        results(&ran)[0].content,
        ToolContent::Text("Error executing command: x".into())
    );
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
}

#[test]
fn a_call_that_was_cut_off_is_never_run() {
    let Part::ToolCall(mut call) = call_part("act", r#"{"a":1}"#) else {
        unreachable!()
    };
    call.complete = false;
    let said = Say::Reply(reply(vec![Part::ToolCall(call)], FinishReason::Length));
    let ran = Sim::new("default", vec![said, text("done")]).run();
    assert!(ran.runs.is_empty());
    assert_eq!(codes(&ran), [Some(ToolErrorCode::InvalidArgs)]);
}

#[test]
fn fa_26_too_many_calls_run_none_and_stop() {
    for (count, stopped) in [(9, false), (10, false), (11, true)] {
        let asked = vec![("look", "{}"); count];
        let ran = Sim::new("stream", vec![calls(&asked), text("done")]).run();
        if stopped {
            assert_eq!(ran.outcome.stop_reason, StopReason::MaxToolCalls);
            assert!(ran.runs.is_empty());
            assert_eq!(codes(&ran), vec![Some(ToolErrorCode::NotRun); count]);
        } else {
            assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
            assert_eq!(ran.runs.len(), count);
        }
    }
}

#[test]
fn the_react_profile_runs_the_first_call_and_says_the_rest_was_ignored() {
    let asked = [("look", r#"{"n":1}"#), ("look", r#"{"n":2}"#)];
    let ran = Sim::new("react", vec![calls(&asked), text("done")]).run();
    assert_eq!(codes(&ran), [None, Some(ToolErrorCode::NotRun)]);
    assert!(results(&ran)[1].content.to_text().contains("ignored"));
}

#[test]
fn tool_calls_of_a_turn_hold_at_one_less_the_bound_and_one_more() {
    for (max, ran_calls) in [(1, 1), (2, 2), (3, 2)] {
        let asked = [("look", r#"{"n":1}"#), ("look", r#"{"n":2}"#)];
        let mut sim = Sim::new("default", vec![calls(&asked), text("done")]);
        sim.profile.limits.max_tool_calls = Some(max);
        let ran = sim.run();
        assert_eq!(ran.outcome.tool_calls, ran_calls);
        let stopped = ran.outcome.stop_reason == StopReason::MaxToolCalls;
        assert_eq!(stopped, max < 2, "max {max}");
        assert!(ran.outcome.answered, "the last request is held back");
    }
}

#[test]
fn a_denied_call_is_a_result_and_the_turn_goes_on_to_its_answer() {
    let mut sim = Sim::new(
        "default",
        vec![calls(&[("act", "{}"), ("look", "{}")]), text("done")],
    );
    sim.gate = Box::new(|call| match call.name.as_str() {
        "act" => Verdict::Deny {
            reason: "no writing".into(),
        },
        _ => Verdict::Allow,
    });
    let ran = sim.run();
    assert_eq!(codes(&ran), [Some(ToolErrorCode::Denied), None]);
    assert_eq!(ran.outcome.text, "done");
}

#[test]
fn a_person_is_asked_once_per_call_and_their_no_is_a_result() {
    for approved in [true, false] {
        let mut sim = Sim::new("default", vec![calls(&[("act", "{}")]), text("done")]);
        sim.gate = Box::new(|_| Verdict::Ask {
            prompt: "really?".into(),
            reasons: Vec::new(),
        });
        sim.approve = Box::new(move |_| {
            if approved {
                Approval::Approved
            } else {
                Approval::Denied {
                    reason: "no".into(),
                }
            }
        });
        let ran = sim.run();
        assert_eq!(ran.runs.len(), usize::from(approved));
        assert!(ran.events.iter().any(|it| matches!(
            it,
            EventBody::ApprovalResolved { approved: answer, .. } if *answer == approved
        )));
    }
}

#[test]
fn arguments_that_a_person_changed_are_run_and_told_to_the_model() {
    for profile in ["default", "python"] {
        let mut sim = Sim::new(profile, vec![calls(&[("act", r#"{"n":1}"#)]), text("done")]);
        sim.gate = Box::new(|_| Verdict::Ask {
            prompt: "really?".into(),
            reasons: Vec::new(),
        });
        sim.approve = Box::new(|_| Approval::edited(json!({"n": 2, "changed": true})));
        let ran = sim.run();
        assert_eq!(ran.runs[0][0].arguments["n"], 2);
        let result = results(&ran)[0].clone();
        let told = match result.content {
            ToolContent::Text(text) => text,
            ToolContent::Json(value) => value["note"].as_str().unwrap().to_owned(),
        };
        assert!(
            told.contains(r#"changed the arguments to {"n":2,"changed":true}"#),
            "{told}"
        );
        assert!(ran.events.iter().any(|it| matches!(
            it,
            EventBody::ApprovalResolved { approved: true, arguments: Some(now), .. } if now["n"] == 2
        )));
        assert_eq!(ran.outcome.text, "done");
    }
}

#[test]
fn what_a_person_left_out_of_a_call_is_told_to_the_model_in_place_of_the_arguments() {
    let mut sim = Sim::new(
        "default",
        vec![calls(&[("act", r#"{"n":1}"#)]), text("done")],
    );
    sim.gate = Box::new(|_| Verdict::Ask {
        prompt: "really?".into(),
        reasons: Vec::new(),
    });
    sim.approve = Box::new(|_| Approval::Edited {
        arguments: json!({"n": 2}),
        left_out: Some("the user left out the third line".to_owned()),
    });
    let ran = sim.run();
    assert_eq!(ran.runs[0][0].arguments["n"], 2);
    let ToolContent::Json(told) = &results(&ran)[0].content else {
        panic!("the result is no object")
    };
    assert_eq!(told["note"], "the user left out the third line");
}

#[test]
fn arguments_that_do_not_fit_once_a_person_changed_them_run_nothing() {
    let mut sim = Sim::new("default", vec![calls(&[("act", "{}")]), text("done")]);
    sim.gate = Box::new(|_| Verdict::Ask {
        prompt: "really?".into(),
        reasons: Vec::new(),
    });
    sim.approve = Box::new(|_| Approval::edited(json!("no object")));
    let ran = sim.run();
    assert_eq!(codes(&ran), [Some(ToolErrorCode::InvalidArgs)]);
    assert!(ran.runs.is_empty());
}

#[test]
fn repaired_arguments_are_reported_and_changed_meaning_with_effects_is_sent_back() {
    let asked = [("look", r#"{"changed":1}"#), ("act", r#"{"changed":1}"#)];
    let ran = Sim::new("default", vec![calls(&asked), text("done")]).run();
    let repaired = ran
        .events
        .iter()
        .filter(|it| matches!(it, EventBody::ArgumentsRepaired { .. }))
        .count();
    assert_eq!(repaired, 2);
    assert_eq!(codes(&ran), [None, Some(ToolErrorCode::InvalidArgs)]);
    assert_eq!(ran.runs.len(), 1);
}

#[test]
fn every_call_is_reported_pending_and_finished_exactly_once() {
    let asked = [
        ("nope", "{}"),
        ("look", "{}"),
        ("act", "oops"),
        ("act", "{}"),
    ];
    let ran = Sim::new("default", vec![calls(&asked), text("done")]).run();
    let count = |is: fn(&EventBody) -> bool| ran.events.iter().filter(|it| is(it)).count();
    assert_eq!(
        count(|it| matches!(it, EventBody::ToolCallPending { .. })),
        4
    );
    assert_eq!(
        count(|it| matches!(it, EventBody::ToolCallFinished { .. })),
        4
    );
    assert_eq!(
        count(|it| matches!(it, EventBody::ToolCallStarted { .. })),
        2
    );
}

#[test]
fn every_step_that_began_ends_exactly_once() {
    for profile in ["default", "stream", "shell"] {
        let script = vec![
            calls(&[("look", "{}")]),
            Say::Fail {
                error: rondo_types::ModelError::new(rondo_types::ErrorClass::StepTimeout, "late"),
                partial: "",
                committed: false,
            },
            text("last"),
        ];
        let ran = Sim::new(profile, script).run();
        let mut open = None;
        for event in &ran.events {
            match event {
                EventBody::StepStarted { step } => assert_eq!(open.replace(*step), None),
                EventBody::StepFinished { step, .. } => assert_eq!(open.take(), Some(*step)),
                _ => {}
            }
        }
        assert_eq!(open, None, "{profile}");
    }
}

#[test]
fn the_same_call_with_the_same_result_is_nudged_withheld_and_finalised() {
    let ran = Sim::always("default", |call| match call.request.tools.is_empty() {
        true => text("all I know"),
        false => calls(&[("look", r#"{"same":true}"#)]),
    })
    .run();
    assert_eq!(ran.outcome.stop_reason, StopReason::NoProgress);
    assert!(ran.outcome.answered && ran.outcome.degraded);
    let nudged = ran
        .outcome
        .transcript
        .iter()
        .filter(|it| it.synthetic && it.text().ends_with("answer now: q"));
    assert!(nudged.count() >= 1);
    let offered: Vec<_> = ran
        .requests
        .iter()
        .map(|call| call.request.tools.len())
        .collect();
    assert_eq!(offered, [2, 2, 2, 1, 0]);
}

#[test]
fn new_arguments_or_new_results_are_progress() {
    let mut n = 0;
    let mut sim = Sim::always("default", move |_| {
        n += 1;
        let arguments = format!(r#"{{"n":{n}}}"#);
        if n > 20 {
            text("done")
        } else {
            calls(&[("look", arguments.as_str())])
        }
    });
    sim.tool = Box::new(|_| ToolOutcome::text("same"));
    assert_eq!(sim.run().outcome.stop_reason, StopReason::Complete);

    let (mut asked, mut ticks) = (0, 0);
    let mut sim = Sim::always("default", move |_| {
        asked += 1;
        if asked > 20 {
            text("done")
        } else {
            calls(&[("look", "{}")])
        }
    });
    sim.tool = Box::new(move |_| {
        ticks += 1;
        ToolOutcome::text(format!("tick {ticks}"))
    });
    assert_eq!(sim.run().outcome.stop_reason, StopReason::Complete);
}

#[test]
fn py_25_ids_of_the_provider_stay_with_call_and_result() {
    let Part::ToolCall(mut call) = call_part("look", "{}") else {
        unreachable!()
    };
    call.wire_id = Some("call_9".into());
    let said = Say::Reply(reply(vec![Part::ToolCall(call)], FinishReason::Stop));
    let ran = Sim::new("python", vec![said, text("done")]).run();
    let result = &results(&ran)[0];
    assert_eq!(result.wire_id.as_deref(), Some("call_9"));
    assert_eq!(result.call_id.as_str(), "r00100100");
}

#[test]
fn the_machine_knows_which_calls_the_interceptors_were_asked_about() {
    let (mut machine, ids) = super::doubt::with_calls(2);
    let call_id = ids[0].clone();
    let what = Interception::Allowed { call_id };
    machine.handle(TimeMs(3), Input::Intercepted { what }, &AnyObject);
    let is_intercepted = ids.iter().map(|id| machine.is_intercepted(id));
    assert_eq!(is_intercepted.collect::<Vec<_>>(), [true, false]);
}
