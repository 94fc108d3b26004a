//! Sets of rules that profiles name.

use crate::gate::Fixture;
use rondo_core::ports::Verdict;
use rondo_policy::rules::{AnyOf, Decision, RuleDirs, RuleSpec, Rules, SETS_MAX};
use std::path::Path;
use std::sync::Arc;

const ORIGIN: &str = "policy.toml";
fn dirs() -> RuleDirs<'static> {
    RuleDirs {
        working: Path::new("/work"),
        home: None,
    }
}

fn deny(program: &str) -> RuleSpec {
    RuleSpec {
        command: vec![AnyOf::One(program.to_owned())],
        ..RuleSpec::new(Decision::Deny)
    }
}

fn defined(name: &str, specs: Vec<RuleSpec>) -> Result<Rules, String> {
    let mut rules = Rules::default();
    rules.define(name, specs, ORIGIN, dirs())?;
    Ok(rules)
}

#[track_caller]
fn refused(name: &str, specs: Vec<RuleSpec>, said: &str) {
    let error = defined(name, specs).unwrap_err();
    assert!(error.contains(said), "{error}");
}

#[tokio::test]
async fn a_set_counts_under_a_profile_that_names_it_alone() {
    let mut fixture = Fixture::new();
    fixture.options.yolo = true;
    fixture.options.rules = Arc::new(defined("no-curl", vec![deny("curl")]).unwrap());
    assert_eq!(fixture.exec("curl x").await, Verdict::Allow);
    let rules = Arc::make_mut(&mut fixture.options.rules);
    rules.put_in_force("no-curl", "mine").unwrap();
    rules.put_in_force("no-curl", "mine").unwrap();
    assert_eq!(rules.rules().len(), 1, "named twice, it counts once");
    let origin = rules.rules()[0].origin();
    assert_eq!(origin, "policy.toml, rule set `no-curl` of profile `mine`");
    let verdict = fixture.exec("curl x").await;
    assert!(matches!(verdict, Verdict::Deny { .. }), "{verdict:?}");
}

#[test]
fn a_set_that_no_file_defines_is_an_error_that_names_those_there_are() {
    let mut rules = defined("no-curl", vec![deny("curl")]).unwrap();
    let error = rules.put_in_force("no-crul", "mine").unwrap_err();
    assert_eq!(error.known, ["no-curl", "dangerous-programs"]);
    let said = error.to_string();
    assert!(
        said.contains("`mine` names the rule set `no-crul`"),
        "{said}"
    );
}

#[test]
fn a_set_restricts_and_no_other_takes_its_name() {
    let allow = RuleSpec {
        decision: Decision::Allow,
        ..deny("curl")
    };
    refused("mine", vec![deny("a"), allow], "rule 2: a rule of a set");
    refused(
        "dangerous-programs",
        vec![deny("a")],
        "of this name already",
    );
    refused("mine", Vec::new(), "it has no rule");
    for name in ["", "a b", "../x", "a\u{202e}b", &"x".repeat(65)] {
        refused(name, vec![deny("a")], "letters, digits");
    }
    let mut rules = defined("mine", vec![deny("a")]).unwrap();
    let again = rules.define("mine", vec![deny("b")], ORIGIN, dirs());
    assert!(again.unwrap_err().contains("of this name already"));
}

#[test]
fn sets_and_their_rules_are_bounded() {
    let mut rules = Rules::default();
    for number in 0..SETS_MAX {
        let name = format!("set-{number}");
        rules
            .define(&name, vec![deny("a")], ORIGIN, dirs())
            .unwrap();
    }
    let more = rules.define("more", vec![deny("a")], ORIGIN, dirs());
    assert!(more.unwrap_err().contains("more than 64 sets"));
    let many = vec![deny("a"); rondo_policy::rules::RULES_MAX];
    rules.add(many, ORIGIN, dirs()).unwrap_err();
    assert!(rules.rules().len() < rondo_policy::rules::RULES_MAX);
}

#[tokio::test]
async fn a_rule_says_what_becomes_of_a_command_of_which_it_cannot_be_told_whether_it_fits() {
    for (when_unclear, expected) in [
        (None, Decision::Ask),
        (Some(Decision::Deny), Decision::Deny),
    ] {
        let mut fixture = Fixture::new();
        fixture.options.yolo = true;
        let rule = RuleSpec {
            when_unclear,
            ..deny("curl")
        };
        let rules = Arc::make_mut(&mut fixture.options.rules);
        rules.add(vec![rule], ORIGIN, dirs()).unwrap();
        for command in [
            "$X y",
            "bash -c \"$X\"",
            "echo aGk= | base64 -d | sh",
            "if then",
        ] {
            assert_eq!(fixture.decision(command).await, expected, "{command}");
        }
        assert_eq!(fixture.decision("touch a").await, Decision::Allow);
    }
    for (decision, when_unclear, said) in [
        (Decision::Deny, Decision::Allow, "`ask` or `deny`"),
        (Decision::Ask, Decision::Deny, "for rules that deny"),
        (Decision::Allow, Decision::Deny, "for rules that deny"),
    ] {
        let rule = RuleSpec {
            decision,
            when_unclear: Some(when_unclear),
            ..deny("curl")
        };
        let error = Rules::default()
            .add(vec![rule], ORIGIN, dirs())
            .unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_star_ends_the_name_of_a_program_that_a_rule_restricts_and_of_none_that_it_allows() {
    let mut fixture = Fixture::new();
    let rules = Arc::make_mut(&mut fixture.options.rules);
    rules.add(vec![deny("mk*")], ORIGIN, dirs()).unwrap();
    for command in [
        "mkfs.ext4 x",
        "mkdir x",
        "mk",
        "env /usr/bin/mkdir x",
        "sh -c 'mkdir x'",
    ] {
        assert_eq!(fixture.decision(command).await, Decision::Deny, "{command}");
    }
    assert_eq!(fixture.decision("touch mk").await, Decision::Ask);
    let mut fixture = Fixture::new();
    let allow = RuleSpec {
        decision: Decision::Allow,
        ..deny("mk*")
    };
    let rules = Arc::make_mut(&mut fixture.options.rules);
    rules.add(vec![allow], ORIGIN, dirs()).unwrap();
    assert_eq!(fixture.decision("mkdir x").await, Decision::Ask);
}

#[tokio::test]
async fn a_rule_that_asks_hides_no_question_that_holds_though_all_calls_are_allowed() {
    let ask = RuleSpec {
        decision: Decision::Ask,
        ..deny("touch")
    };
    for specs in [vec![deny("rm"), ask.clone()], vec![ask, deny("rm")]] {
        let mut fixture = Fixture::new();
        fixture.options.yolo = true;
        let rules = Arc::make_mut(&mut fixture.options.rules);
        rules.add(specs, ORIGIN, dirs()).unwrap();
        assert_eq!(fixture.decision("touch a; $X b").await, Decision::Ask);
    }
}
