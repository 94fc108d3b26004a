//! Tests: limits on steps, time, tokens and money hold, with an answer in reserve.

use super::sim::{Say, Sim, calls, text};
use crate::machine::TurnMachine;
use rondo_types::{
    ErrorClass, ModelError, NanoUsd, Price, Spend, StopReason, ToolError, ToolErrorCode,
    ToolOutcome, ToolOutput, Usage,
};
use std::time::Duration;

/// A model that never answers while it has tools, with new arguments each time.
fn restless(profile: &str) -> Sim {
    let mut n = 0;
    Sim::always(profile, move |call| {
        n += 1;
        if call.request.tools.is_empty() {
            text("what I found")
        } else {
            calls(&[("look", format!(r#"{{"n":{n}}}"#).as_str())])
        }
    })
}

#[test]
fn py_10_py_46_fa_25_gs_4_hub_7_hub_9_steps_hold_at_the_bound_and_findings_are_reported() {
    for (profile, max) in [
        ("python", 6),
        ("stream", 25),
        ("shell", 10),
        ("hub", 200),
        ("react", 10),
    ] {
        let ran = restless(profile).run();
        assert_eq!(ran.requests.len(), max, "{profile}");
        assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
        assert_eq!(ran.outcome.steps as usize, max);
        assert_eq!(
            ran.outcome.findings.len(),
            max,
            "the last step's calls still ran"
        );
        assert!(ran.outcome.degraded && !ran.outcome.answered);
        assert!(ran.outcome.text.contains("look"), "{}", ran.outcome.text);
    }
}

#[test]
fn hub_7_the_notice_is_the_designs_and_partial_results_follow() {
    let ran = restless("hub").run();
    assert!(
        ran.outcome.text.starts_with("Max iterations reached\n"),
        "{}",
        ran.outcome.text
    );
    assert!(ran.outcome.text.contains("Partial results:\n- "));
}

#[test]
fn steps_hold_at_one_less_the_bound_and_one_more() {
    for (steps_needed, max, complete) in [(2, 3, true), (3, 3, true), (4, 3, false)] {
        let mut n = 0;
        let mut sim = Sim::always("shell", move |_| {
            n += 1;
            if n >= steps_needed {
                text("done")
            } else {
                calls(&[("look", format!(r#"{{"n":{n}}}"#).as_str())])
            }
        });
        sim.profile.limits.max_steps = max;
        let ran = sim.run();
        assert_eq!(ran.outcome.stop_reason == StopReason::Complete, complete);
        assert!(ran.outcome.steps <= max);
    }
}

#[test]
fn the_last_step_is_held_back_for_a_tool_free_answer() {
    for max in [1, 2, 3, 5] {
        let mut sim = restless("default");
        sim.profile.limits.max_steps = max;
        let ran = sim.run();
        assert_eq!(ran.requests.len() as u32, max);
        assert!(ran.requests.last().unwrap().request.tools.is_empty());
        assert_eq!(ran.outcome.text, "what I found");
        assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
        assert!(ran.outcome.answered && ran.outcome.degraded);
    }
}

#[test]
fn py_12_py_44_py_46_the_turn_stops_at_its_deadline_with_findings() {
    let mut sim = restless("python");
    sim.model_time = Duration::from_secs(6);
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert!(ran.outcome.elapsed_ms <= 20_000);
    assert_eq!(ran.outcome.findings.len(), 3);
    assert!(ran.outcome.text.contains("20 s"), "{}", ran.outcome.text);
}

#[test]
fn py_11_py_43_py_46_a_step_that_takes_too_long_stops_the_turn() {
    let mut sim = restless("python");
    sim.model_time = Duration::from_millis(8_001);
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert_eq!((ran.outcome.steps, ran.outcome.elapsed_ms), (1, 8_000));
    let mut sim = restless("python");
    sim.model_time = Duration::from_millis(8_000);
    assert_eq!(sim.run().outcome.stop_reason, StopReason::Deadline);
}

#[test]
fn a_slice_of_the_turns_time_is_held_back_for_the_answer() {
    let mut sim = restless("default");
    sim.profile.limits.turn_timeout = Some(Duration::from_secs(20));
    sim.model_time = Duration::from_secs(4);
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert!(ran.outcome.answered);
    assert!(ran.outcome.elapsed_ms <= 20_000);
}

#[test]
fn a_call_is_left_what_the_turn_does_not_need_itself() {
    let allowance = |change: fn(&mut Sim)| {
        let mut sim = Sim::new("default", vec![]);
        sim.price = Some(Price {
            input: 1,
            output: 2,
            ..Price::default()
        });
        change(&mut sim);
        let mut machine = TurnMachine::new(sim.config());
        machine.spent.usage = Usage {
            input: 10_000,
            ..Usage::default()
        };
        machine.spent.cost = Some(NanoUsd(500));
        machine.call_allowance()
    };
    let unlimited = allowance(|sim| {
        sim.profile.limits.max_tokens_total = None;
        sim.profile.limits.max_cost = None;
        sim.profile.limits.max_tool_calls = None;
    });
    let of = |it: rondo_types::RemainingLimits| (it.calls, it.tokens, it.cost);
    assert_eq!(of(unlimited), (None, None, None));
    let spent = allowance(|sim| {
        sim.profile.limits.max_steps = 1;
        sim.profile.limits.max_tokens_total = Some(10_001);
        sim.profile.limits.max_cost = Some(NanoUsd(501));
        sim.profile.limits.max_tool_calls = Some(0);
    });
    assert_eq!(spent.steps, Some(0));
    assert_eq!(of(spent), (Some(0), Some(0), Some(NanoUsd(0))));
    let some = allowance(|sim| {
        sim.profile.limits.reserve_final = false;
        sim.profile.limits.max_tokens_total = Some(20_000);
        sim.profile.limits.max_cost = Some(NanoUsd(2_000));
    });
    // What the next request has at the least is the turn's own.
    assert_eq!(some.tokens, Some(20_000 - 10_000 - 256));
    assert_eq!(some.cost, Some(NanoUsd(2_000 - 500 - 2 * 256)));
}

#[test]
fn what_turns_of_calls_used_counts_against_every_limit() {
    let ended = |used: Spend, change: fn(&mut Sim)| {
        let mut sim = restless("default");
        sim.price = Some(Price {
            input: 1,
            output: 2,
            ..Price::default()
        });
        change(&mut sim);
        sim.tool = Box::new(move |_| match used.steps % 2 {
            0 => ToolOutcome::Ok(ToolOutput {
                used: Some(Box::new(used)),
                ..ToolOutput::default()
            }),
            _ => ToolOutcome::Error(ToolError {
                code: ToolErrorCode::Failed,
                message: "no".to_owned(),
                details: serde_json::Value::Null,
                used: Some(Box::new(used)),
            }),
        });
        let outcome = sim.run().outcome;
        (outcome.stop_reason, outcome.steps, outcome.delegated)
    };
    let used = |steps, tokens, cost| Spend {
        steps,
        calls: 1,
        tokens,
        cost: Some(NanoUsd(cost)),
    };
    // One step and those of the child; then the last answer, if one is left for it.
    for steps in [3, 4] {
        let (reason, own, delegated) =
            ended(used(steps, 0, 0), |sim| sim.profile.limits.max_steps = 5);
        assert_eq!((reason, own), (StopReason::MaxSteps, 5 - steps));
        assert_eq!(delegated.unwrap().steps, steps);
    }
    let (reason, own, _) = ended(used(0, 100_000, 0), |sim| {
        sim.profile.limits.max_tokens_total = Some(103_000);
    });
    assert_eq!((reason, own), (StopReason::MaxTokens, 2));
    let (reason, own, _) = ended(used(0, 0, 100_000), |sim| {
        sim.profile.limits.max_cost = Some(NanoUsd(106_000));
    });
    assert_eq!((reason, own), (StopReason::MaxCost, 2));
    // One call and that of its turn; then a call that is refused, and the last answer. Without that turn's
    // call it would be a step more.
    let (reason, own, _) = ended(used(0, 0, 0), |sim| {
        sim.profile.limits.max_tool_calls = Some(2);
    });
    assert_eq!((reason, own), (StopReason::MaxToolCalls, 3));
}

#[test]
fn a_call_that_runs_turns_is_bounded_by_the_turns_time_alone() {
    let mut sim = restless("python");
    sim.profile.limits.tool_timeout = Some(Duration::from_secs(1));
    for tool in &mut sim.tools {
        tool.runs_turns = true;
    }
    let ran = sim.run();
    let timeouts = ran.runs.iter().flatten().map(|call| call.timeout.unwrap());
    assert!(timeouts.min().unwrap() > Duration::from_secs(5));
}

#[test]
fn a_tools_own_timeout_shortens_its_calls_and_lengthens_none() {
    let timeouts = |own: u64, of_profile: Option<u64>| {
        let mut sim = restless("python");
        sim.profile.limits.tool_timeout = of_profile.map(Duration::from_secs);
        for tool in &mut sim.tools {
            tool.timeout = Some(Duration::from_secs(own));
        }
        let ran = sim.run();
        let timeouts = ran.runs.iter().flatten().map(|call| call.timeout.unwrap());
        timeouts.map(|it| it.as_millis()).collect::<Vec<_>>()
    };
    let of_the_turn = timeouts(u64::MAX, None);
    assert!(of_the_turn.iter().all(|it| *it > 5_000), "{of_the_turn:?}");
    assert!(timeouts(5, None).iter().all(|it| *it == 5_000));
    assert!(timeouts(5, Some(3)).iter().all(|it| *it == 3_000));
}

#[test]
fn tool_time_counts_and_no_call_may_outlive_the_deadline() {
    let mut sim = restless("python");
    sim.tool_time = Duration::from_secs(7);
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    let timeouts: Vec<_> = ran
        .runs
        .iter()
        .flatten()
        .map(|call| call.timeout.unwrap().as_millis())
        .collect();
    assert_eq!(timeouts, [19_990, 12_980, 5_970]);
}

#[test]
fn tokens_hold_and_leave_room_for_the_answer() {
    for max in [100, 1_000, 3_000, 10_000] {
        let mut sim = restless("default");
        sim.profile.limits.max_tokens_total = Some(max);
        let ran = sim.run();
        assert_eq!(ran.outcome.stop_reason, StopReason::MaxTokens, "max {max}");
        assert!(
            ran.outcome.usage.total() <= max,
            "max {max}: {:?}",
            ran.outcome.usage
        );
        assert_eq!(ran.outcome.answered, max >= 1_000);
    }
}

#[test]
fn money_holds_and_leaves_room_for_the_answer() {
    let mut sim = restless("default");
    sim.price = Some(Price {
        input: 1_000,
        output: 4_000,
        ..Price::default()
    });
    sim.profile.limits.max_cost = Some(NanoUsd::from_usd(0.01));
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxCost);
    assert!(ran.outcome.cost.unwrap() <= NanoUsd::from_usd(0.01));
    assert!(ran.outcome.answered);
}

#[test]
fn generated_tokens_are_capped_only_where_the_budget_runs_low() {
    let mut sim = restless("default");
    sim.profile.limits.max_tokens_total = Some(40_000);
    let ran = sim.run();
    let caps: Vec<_> = ran
        .requests
        .iter()
        .map(|call| call.request.sampling.max_output_tokens)
        .collect();
    assert_eq!(caps.first(), Some(&None));
    assert!(caps.last().unwrap().unwrap() <= 8192);
}

#[test]
fn a_last_answer_with_calls_in_it_runs_none_of_them() {
    let mut n = 0;
    let mut sim = Sim::always("default", move |_| {
        n += 1;
        calls(&[("look", format!(r#"{{"n":{n}}}"#).as_str())])
    });
    sim.profile.limits.max_steps = 2;
    let ran = sim.run();
    assert_eq!(ran.outcome.tool_calls, 1);
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert!(!ran.outcome.answered);
    assert_eq!(ran.outcome.findings.len(), 1);
}

#[test]
fn py_47_findings_are_the_successful_results_only() {
    let mut sim = restless("python");
    let mut n = 0;
    sim.tool = Box::new(move |_| {
        n += 1;
        if n % 2 == 0 {
            ToolOutcome::error(rondo_types::ToolErrorCode::Failed, "bad luck")
        } else {
            ToolOutcome::text(format!("fact {n}"))
        }
    });
    let ran = sim.run();
    assert_eq!(ran.outcome.findings.len(), 3);
    assert!(ran.outcome.text.contains("Confirmed so far:"));
    assert!(ran.outcome.text.contains("fact 5") && !ran.outcome.text.contains("bad luck"));
}

/// As [`restless`], with a provider that reports `usage` of every reply.
fn restless_reporting(usage: Option<Usage>) -> Sim {
    let mut sim = restless("default");
    let mut model = sim.model;
    sim.model = Box::new(move |call| match model(call) {
        Say::Reply(reply) => Say::Reply(rondo_types::Reply { usage, ..reply }),
        failed @ Say::Fail { .. } => failed,
    });
    sim
}

#[test]
fn counts_of_zero_are_estimated_like_missing_ones() {
    let some = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    let limited = |usage| {
        let mut sim = restless_reporting(usage);
        sim.profile.limits.max_tokens_total = Some(4_000);
        sim.run().outcome
    };
    let missing = limited(None);
    assert_eq!(missing.stop_reason, StopReason::MaxTokens);
    assert_eq!(limited(Some(Usage::default())), missing);
    for usage in [some(0, 5), some(50, 0)] {
        let outcome = limited(Some(usage));
        assert_eq!(outcome.stop_reason, StopReason::MaxTokens, "{usage:?}");
        assert!(
            outcome.usage.input > 0 && outcome.usage.output > 0,
            "{usage:?}"
        );
    }
}

#[test]
fn money_runs_out_although_the_provider_counts_nothing() {
    let mut sim = restless_reporting(Some(Usage {
        reasoning: 3,
        ..Usage::default()
    }));
    sim.price = Some(Price {
        input: 1_000,
        output: 4_000,
        ..Price::default()
    });
    sim.profile.limits.max_cost = Some(NanoUsd::from_usd(0.01));
    let outcome = sim.run().outcome;
    assert_eq!(outcome.stop_reason, StopReason::MaxCost);
    assert!(outcome.cost.unwrap() > NanoUsd(0));
    assert!(outcome.usage.output >= outcome.usage.reasoning);
}

#[test]
fn a_turn_of_one_request_stops_for_what_ended_that_request() {
    let cases = [
        (ErrorClass::Deadline, StopReason::Deadline),
        (ErrorClass::StepTimeout, StopReason::StepTimeout),
        (ErrorClass::FirstByteTimeout, StopReason::StepTimeout),
        (ErrorClass::ContentFilter, StopReason::Refused),
        (ErrorClass::Auth, StopReason::Error),
    ];
    for (class, reason) in cases {
        let mut sim = Sim::always("default", move |_| Say::Fail {
            error: ModelError::new(class, "boom"),
            partial: "",
            committed: false,
        });
        sim.profile.limits.max_steps = 1;
        sim.profile.limits.retry.max_retries = 0;
        assert_eq!(sim.run().outcome.stop_reason, reason, "{class}");
    }
}

#[test]
fn a_last_request_that_the_deadline_ends_stops_the_turn_for_the_deadline() {
    for (class, reason) in [
        (ErrorClass::Deadline, StopReason::Deadline),
        (ErrorClass::IdleTimeout, StopReason::MaxSteps),
    ] {
        let mut sim = restless("default");
        let mut model = sim.model;
        sim.model = Box::new(move |call| match call.request.tools.is_empty() {
            false => model(call),
            true => Say::Fail {
                error: ModelError::new(class, "boom"),
                partial: "",
                committed: false,
            },
        });
        sim.profile.limits.max_steps = 3;
        sim.profile.limits.retry.max_retries = 0;
        let outcome = sim.run().outcome;
        assert_eq!(outcome.stop_reason, reason, "{class}");
        assert_eq!(outcome.findings.len(), 2);
    }
}

#[test]
fn a_conversation_may_be_as_long_as_its_bound_and_no_longer() {
    let max = usize::try_from(crate::machine::turn::MESSAGE_BYTES_MAX).unwrap();
    for (bytes, stop_reason) in [
        (max - 1, StopReason::Complete),
        (max, StopReason::Complete),
        (max + 1, StopReason::Error),
    ] {
        let mut sim = Sim::always("stream", |_| text("ok"));
        // The question takes a byte.
        sim.history = vec![std::sync::Arc::new(rondo_types::Message::user(
            "x".repeat(bytes - 1),
        ))];
        let ran = sim.run();
        assert_eq!(ran.outcome.stop_reason, stop_reason, "{bytes}");
        let class = ran.outcome.error.map(|error| error.class);
        assert_eq!(class, (bytes > max).then_some(ErrorClass::TooLarge));
        assert_eq!(ran.requests.len(), usize::from(bytes <= max));
    }
}

#[test]
fn a_turn_whose_replies_are_huge_ends_at_the_bound_of_its_messages() {
    let mut sim = Sim::always("stream", |_| {
        let long = "x".repeat(4 << 20);
        calls(&[("look", &format!(r#"{{"long":"{long}"}}"#))])
    });
    sim.profile.limits.max_steps = 100;
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::TooLarge);
    assert_eq!(ran.requests.len(), 4);
}

#[test]
fn a_count_of_tokens_that_cannot_be_right_is_estimated() {
    for (input, output) in [(u64::MAX, 10), (100, u64::MAX), (1 << 40, 1 << 40)] {
        let usage = Usage {
            input,
            output,
            ..Usage::default()
        };
        let mut script = [calls(&[("look", "{}")]), text("42")];
        if let Say::Reply(reply) = &mut script[0] {
            reply.usage = Some(usage);
        }
        let mut sim = Sim::new("default", script.into());
        sim.profile.limits.max_tokens_total = Some(100_000);
        sim.context_tokens = Some(100_000);
        let ran = sim.run();
        assert_eq!(ran.outcome.text, "42");
        assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
        assert!(ran.outcome.usage.total() < 1_000, "{:?}", ran.outcome.usage);
    }
    let largest = Usage {
        input: 4_000_000,
        output: 1_000_000,
        ..Usage::default()
    };
    let mut script = [text("42")];
    if let Say::Reply(reply) = &mut script[0] {
        reply.usage = Some(largest);
    }
    let ran = Sim::new("default", script.into()).run();
    assert_eq!(ran.outcome.usage, largest);
}

#[test]
fn tools_are_offered_only_as_long_as_a_call_has_time_to_run() {
    let mut sim = restless("default");
    sim.profile.limits.turn_timeout = Some(Duration::from_secs(100));
    sim.profile.limits.max_steps = 10_000;
    sim.model_time = Duration::from_millis(100);
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert_eq!(ran.outcome.text, "what I found");
    let offered = ran
        .requests
        .iter()
        .filter(|it| !it.request.tools.is_empty());
    let without_time = ran.requests.len() - ran.runs.len();
    assert!(without_time <= 2, "{without_time} of {}", offered.count());
}
