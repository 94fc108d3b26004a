//! Over a bound nothing gets laxer.

use crate::grants::{World, asks};
use rondo_core::ports::Verdict;
use rondo_policy::ToolPatterns;
use rondo_policy::analysis::{COMMAND_BYTES_MAX, NESTING_MAX, TOKENS_MAX};
use std::sync::Arc;

/// The bounds of an analysis that have no name outside of it.
const COMMANDS_MAX: usize = 256;
const PATTERNS_MAX: usize = 64;
const REPOSITORIES_MAX: usize = 16;

/// Puts so many of something before a command.
type Pad = fn(usize, &str) -> String;

const BOUNDS: [(&str, usize, Pad); 6] = [
    ("bytes", COMMAND_BYTES_MAX, |count, end| {
        let rest = count.saturating_sub(end.len() + 6);
        format!("echo {}\n{end}", "x".repeat(rest))
    }),
    ("tokens", TOKENS_MAX, |count, end| {
        let own = end.split_whitespace().count();
        format!("echo {}\n{end}", "x ".repeat(count.saturating_sub(own + 2)))
    }),
    ("nesting", NESTING_MAX, |count, end| {
        format!("{}{end}{}", "{ ".repeat(count), "; }".repeat(count))
    }),
    ("commands", COMMANDS_MAX, |count, end| {
        format!("{}{end}", "ls;".repeat(count.saturating_sub(1)))
    }),
    ("patterns", PATTERNS_MAX, |count, end| {
        format!("ls {}\n{end}", "*a ".repeat(count))
    }),
    ("repositories", REPOSITORIES_MAX, |count, end| {
        format!("{}{end}", "git status;".repeat(count))
    }),
];

fn denies(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Deny { .. })
}

#[tokio::test]
async fn over_a_bound_what_is_denied_stays_denied_and_what_is_asked_about_is_asked_about() {
    for is_yolo in [false, true] {
        let mut world = World::new();
        world.options.yolo = is_yolo;
        world.options.allowed_tools = ToolPatterns::parse(["exec(ls *)", "exec(echo *)"]).unwrap();
        world.rules(
            r#"[{"command": ["curl"], "decision": "deny"}, {"path": "secrets/**", "decision": "deny"},
                {"command": ["git", "push"], "decision": "deny"}]"#,
        );
        for (name, bound, pad) in BOUNDS {
            for count in [bound - 1, bound, bound + 1] {
                let what = format!("{count} {name}, yolo: {is_yolo}");
                for denied in ["curl x", "git push origin"] {
                    let verdict = world.check(&pad(count, denied)).await;
                    assert!(denies(&verdict), "{denied}: {what}: {verdict:?}");
                }
                for stopped in ["cat secrets/key", "rm -rf /"] {
                    let verdict = world.check(&pad(count, stopped)).await;
                    let is_stopped = denies(&verdict) || asks(&verdict);
                    assert!(is_stopped, "{stopped}: {what}: {verdict:?}");
                }
                if !is_yolo {
                    let verdict = world.check(&pad(count, "touch a")).await;
                    assert!(asks(&verdict), "{what}: {verdict:?}");
                }
            }
            // What only looks is judged within the bound, and asked about beyond it.
            let within = match name {
                // A group is more than one level, with the list in it.
                "nesting" => bound / 4,
                _ => bound - 1,
            };
            let looks = world.check(&pad(within, "ls")).await;
            let beyond = world.check(&pad(bound + 2, "ls")).await;
            assert_eq!(looks, Verdict::Allow, "{name}");
            assert!(asks(&beyond) || is_yolo, "{name}: {beyond:?}");
        }
    }
}

#[tokio::test]
async fn a_program_that_may_not_run_may_not_run_over_a_bound() {
    let mut world = World::new();
    world.options.yolo = true;
    let programs = ["rm".to_owned()];
    Arc::make_mut(&mut world.options.rules).forbid_programs(&programs, "own");
    for (name, bound, pad) in BOUNDS {
        for count in [bound - 1, bound, bound + 1] {
            let verdict = world.check(&pad(count, "rm a")).await;
            assert!(denies(&verdict), "{count} {name}: {verdict:?}");
        }
    }
}
