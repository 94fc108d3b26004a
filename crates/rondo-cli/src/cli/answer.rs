//! The arguments of `rondo answer`.

use super::ResumeOptions;
use clap::Args;

/// Arguments of `rondo answer`. Models, prompts and limits are the ones that the turn started with.
#[derive(Debug, Args)]
#[command(override_usage = "rondo answer [OPTIONS] SESSION [QUESTION] ANSWER")]
pub(crate) struct AnswerArgs {
    /// Session that waits: an id, a prefix of one, or `latest`
    #[arg(value_name = "SESSION")]
    pub(crate) waiting: String,
    /// Question, where several are open, and the answer: `y`, `n`, `edit` (opens the call's arguments in $EDITOR), or
    /// the arguments to run the call with, as JSON; `a` (and its like in this session), `x` (exactly this in this
    /// session), `f` or `fx` (the same for ever, in your policy.toml) where the question offers them
    #[arg(value_name = "ANSWER", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
    /// With `n`: what the model reads as the reason
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) options: ResumeOptions,
}
