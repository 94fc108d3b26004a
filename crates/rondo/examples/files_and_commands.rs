//! Works in a directory with the built-in tools; what is not known to be harmless is asked about.
//!
//! `cargo run -p rondo --example files_and_commands -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::tools::{ExecOptions, SupervisorCommand};
use rondo::{Agent, AnswerValue, HttpModel, Question, supervisor};
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Failure> {
    // Commands run under a small supervisor, which is this program, started again.
    supervisor::run_if_requested();
    let model = model_from_env(&mut std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let state = std::env::temp_dir().join("rondo-files-and-commands");
    runtime.block_on(run(model, Path::new("."), &state, &mut std::io::stdout()))
}

pub(crate) async fn run(
    model: HttpModel,
    directory: &Path,
    state: &Path,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let commands = ExecOptions::new(
        SupervisorCommand::CurrentExe,
        directory.to_owned(),
        state.to_owned(),
    );
    let agent = Agent::builder(model)
        .files(directory)
        .commands(commands)
        .approve_with(only_notes)
        .build()?;
    let outcome = agent
        .run("Which files are here? Write their names into notes.md.")
        .await?;
    writeln!(out, "{}", outcome.text)?;
    Ok(())
}

/// A rule in place of a person: one file may be written, and no command may change anything.
async fn only_notes(question: Question) -> AnswerValue {
    let call = question.subject;
    let path = call.arguments.get("path");
    if call.tool == "write_file" && path.is_some_and(|path| path == "notes.md") {
        return AnswerValue::Approve;
    }
    AnswerValue::Deny {
        reason: "only notes.md may be written".to_owned(),
    }
}
