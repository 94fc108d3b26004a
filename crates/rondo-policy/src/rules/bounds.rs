//! The bounds of rules, and what contradicts itself in one.

use super::{AnyOf, Decision, RuleSpec, TEXT_BYTES_MAX, WORDS_MAX};

/// Refuses a rule that is too long, or that no call could fit as it is meant.
pub(super) fn check_bounds(spec: &RuleSpec) -> Result<(), String> {
    let has_examples = !(spec.matches.is_empty() && spec.not_match.is_empty());
    let (has_command, has_path) = (!spec.command.is_empty(), spec.path.is_some());
    let has_host = spec.host.is_some();
    if !has_command && !has_path && !has_host && spec.tool.is_none() {
        return Err("it needs `tool`, `command`, `path` or `host`".to_owned());
    }
    if has_host && (has_command || has_path) {
        return Err("a rule with a `host` has no `command` and no `path`".to_owned());
    }
    if has_examples && !has_command && !has_path {
        return Err("examples need a `command` or a `path` to fit".to_owned());
    }
    if has_command && has_path && spec.decision == Decision::Allow {
        return Err("a rule that allows has a `command` or a `path`, not both".to_owned());
    }
    match (spec.when_unclear, spec.decision) {
        (None, _) | (Some(Decision::Ask | Decision::Deny), Decision::Deny) => {}
        (Some(_), Decision::Deny) => return Err("`when_unclear` is `ask` or `deny`".to_owned()),
        (Some(_), _) => return Err("`when_unclear` is for rules that deny".to_owned()),
    }
    let any = |any: &AnyOf| any.texts().to_vec();
    let lists = [
        spec.tool.as_ref().map(any),
        spec.path.as_ref().map(any),
        spec.host.as_ref().map(any),
        Some(spec.command.iter().flat_map(any).collect()),
        Some(spec.matches.clone()),
        Some(spec.not_match.clone()),
        Some(spec.message.iter().cloned().collect()),
    ];
    for list in lists.iter().flatten() {
        if list.len() > WORDS_MAX {
            return Err(format!("a list of it has more than {WORDS_MAX} entries"));
        }
        if list.iter().any(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(format!(
                "a text of it is longer than {TEXT_BYTES_MAX} bytes"
            ));
        }
    }
    let is_empty = |any: &AnyOf| any.texts().is_empty() || any.has("");
    let listed = spec.command.iter().chain(&spec.tool);
    let listed = listed.chain(&spec.path).chain(&spec.host);
    if listed.into_iter().any(is_empty) {
        return Err("a tool, word, path or host of it is empty".to_owned());
    }
    Ok(())
}
