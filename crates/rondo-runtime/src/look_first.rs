//! Shows a small model, before its first step, the parts of the working directory that concern a question; after a
//! search that found nothing, the words that do occur. Small models choose commands badly and read well. Profiles
//! enable it with `look_first`.

use async_trait::async_trait;
use rondo_core::ports::{
    FinishedCall, Gate, GateRequest, Interceptor, ResultDecision, StepContext, StepDecision, Tool,
    Verdict,
};
use rondo_core::redact::Secrets;
use rondo_exec::ExecTool;
use rondo_tools::{Occurrences, Overview, ReadFile, Workspace};
use rondo_types::{CallId, Message, Role, SessionId, ToolOutcome, ToolSpec, TurnId};
use serde_json::json;
use std::sync::Arc;

/// Programs that print lines which fit, and nothing if none does.
const SEARCHES: [&str; 6] = ["grep", "egrep", "fgrep", "rg", "ag", "ack"];
/// Replacement of empty output.
const NOTHING_FOUND: &str = "(no output: nothing was found)";

/// Looks at the working directory at the start of each turn, and after a search that found nothing.
///
/// The gate is asked about each file of which lines or words would be shown, as about a call of `read_file`; what
/// it does not allow at once is not shown.
pub(crate) struct FirstLook {
    workspace: Arc<Workspace>,
    gate: Arc<dyn Gate>,
    secrets: Secrets,
    reading: Arc<ToolSpec>,
}

impl FirstLook {
    /// Looks at a workspace, as far as a gate allows.
    pub(crate) fn new(workspace: &Arc<Workspace>, gate: &Arc<dyn Gate>, secrets: &Secrets) -> Self {
        Self {
            workspace: Arc::clone(workspace),
            gate: Arc::clone(gate),
            secrets: secrets.clone(),
            reading: Arc::new(ReadFile::new(Arc::clone(workspace)).spec()),
        }
    }

    /// Returns those of some files that may not be shown.
    async fn hidden(&self, at: &Reading, files: Vec<String>) -> Vec<String> {
        let mut hidden = Vec::new();
        for file in files {
            let request = GateRequest {
                session: at.session.clone(),
                turn: at.turn.clone(),
                step: at.step,
                call_id: at.call_id.clone(),
                spec: Arc::clone(&self.reading),
                arguments: json!({"path": file}),
                has_outside_text: false,
            };
            if self.gate.check(&request).await != Verdict::Allow {
                hidden.push(file);
            }
        }
        hidden
    }
}

/// Question for which files are shown.
struct Reading {
    session: SessionId,
    turn: TurnId,
    step: u32,
    call_id: CallId,
}

fn owned(files: Vec<&str>) -> Vec<String> {
    files.into_iter().map(str::to_owned).collect()
}

/// Returns the command line of a call that searched and found nothing, and what it printed.
fn fruitless(call: &FinishedCall) -> Option<(&str, &str)> {
    let command = call.arguments.get("command")?.as_str()?;
    let ToolOutcome::Ok(output) = &call.outcome else {
        return None;
    };
    let printed = output.value.get("stdout")?.as_str()?.trim();
    let code = output.value.get("exitCode")?.as_i64()?;
    let searches = |part: &str| SEARCHES.contains(&part.split(' ').next().unwrap_or_default());
    let mut parts = command.split(['|', ';', '&', '(']).map(str::trim);
    // A search whose output another program reads ends as that one does, and `grep -q` is silent if it finds.
    let found_nothing = match (code, printed) {
        (1, "" | "0") | (0, "0") => true,
        (0, "") => command.contains('|'),
        _ => false,
    };
    let is_fruitless =
        ExecTool::NAMES.contains(&call.tool.as_str()) && found_nothing && parts.any(searches);
    is_fruitless.then_some((command, printed))
}

/// Returns the user's latest question.
fn question(messages: &[Arc<Message>]) -> Option<String> {
    let mut from_end = messages.iter().rev();
    let asked = from_end.find(|it| it.role == Role::User && !it.synthetic)?;
    Some(asked.text())
}

#[async_trait]
impl Interceptor for FirstLook {
    fn name(&self) -> &'static str {
        "look_first"
    }

    /// # Cancel safety
    /// Cancel safe: it only reads.
    async fn turn_start(&self, step: &StepContext) -> StepDecision {
        let Some(question) = question(&step.transcript) else {
            return StepDecision::Continue;
        };
        let workspace = Arc::clone(&self.workspace);
        let looked = tokio::task::spawn_blocking(move || Overview::of(&workspace, &question));
        let Ok(mut overview) = looked.await else {
            return StepDecision::Continue;
        };
        let at = Reading {
            session: step.session.clone(),
            turn: step.turn.clone(),
            step: step.step,
            call_id: CallId::new("look-first"),
        };
        for file in self.hidden(&at, owned(overview.shown_files())).await {
            overview = overview.without(&file);
        }
        let text = self.secrets.text(overview.to_string());
        StepDecision::Add { text }
    }

    /// # Cancel safety
    /// Cancel safe: it only reads.
    async fn after_tool(&self, call: &FinishedCall) -> ResultDecision {
        let Some((command, printed)) = fruitless(call) else {
            return ResultDecision::Keep;
        };
        let (workspace, command) = (Arc::clone(&self.workspace), command.to_owned());
        let looked = tokio::task::spawn_blocking(move || Occurrences::of(&workspace, &command));
        let Ok(mut occurrences) = looked.await else {
            return ResultDecision::Keep;
        };
        let at = Reading {
            session: call.session.clone(),
            turn: call.turn.clone(),
            // Nothing that the gate decides depends on it.
            step: 1,
            call_id: call.call_id.clone(),
        };
        for file in self.hidden(&at, owned(occurrences.shown_files())).await {
            occurrences = occurrences.without(&file);
        }
        if occurrences.is_empty() {
            return ResultDecision::Keep;
        }
        let printed = if printed.is_empty() {
            NOTHING_FOUND
        } else {
            printed
        };
        let text = format!("{printed}\n{occurrences}");
        ResultDecision::Rewrite {
            text: self.secrets.text(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::ToolOutput;

    fn finished(tool: &str, command: &str, stdout: &str, code: i64) -> FinishedCall {
        FinishedCall {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            call_id: CallId::new("c"),
            tool: tool.to_owned(),
            arguments: json!({"command": command}),
            outcome: ToolOutcome::Ok(ToolOutput {
                value: json!({"stdout": stdout, "exitCode": code}),
                ..ToolOutput::default()
            }),
            duration_ms: 1,
        }
    }

    #[test]
    fn a_search_that_found_nothing_is_told_from_others() {
        for (command, stdout, code) in [
            ("grep -rn pump .", "", 1),
            ("grep -c pump a.txt", "0\n", 1),
            ("cat a.txt | grep pump | wc -l", "0\n", 0),
            ("cd notes && rg pump | head -n 3", "", 0),
        ] {
            let call = finished("exec", command, stdout, code);
            assert_eq!(
                fruitless(&call),
                Some((command, stdout.trim())),
                "{command}"
            );
        }
        for (tool, command, stdout, code) in [
            ("exec", "grep -rn pump .", "a.txt:1:pump\n", 0),
            ("exec", "grep -q pump a.txt", "", 0),
            ("exec", "grep pump nowhere.txt", "", 2),
            ("exec", "test -e pump", "", 1),
            ("exec", "wc -l < a.txt", "0\n", 0),
            ("exec", "echo rg", "", 1),
            ("list_globals", "grep pump a.txt", "", 1),
        ] {
            let call = finished(tool, command, stdout, code);
            assert_eq!(fruitless(&call), None, "{command}");
        }
    }
}
