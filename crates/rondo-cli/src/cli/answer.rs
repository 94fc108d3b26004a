//! The arguments of `rondo answer`.

use super::ResumeOptions;
use super::completion;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;

/// Answer a pending question and resume the session
///
/// The turn keeps the model, the prompts and the limits that it started with.
#[derive(Debug, Args)]
#[command(override_usage = "rondo answer [OPTIONS] SESSION [QUESTION] ANSWER")]
pub(crate) struct AnswerArgs {
    /// Session with the pending question: an id, a prefix of an id, or `latest`
    #[arg(value_name = "SESSION", add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) waiting: String,
    /// Answer, after the number of the question if several are pending.
    ///
    /// `y` runs the call and `n` refuses it; `edit` opens its arguments in `$EDITOR`, and JSON replaces them. If the
    /// question offers them: `a` also allows similar calls in this session, `x` the same call in this session; `f` and
    /// `fx` do so permanently, in your `policy.toml`.
    #[arg(value_name = "ANSWER", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
    /// Reason that the model is given with `n`
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) options: ResumeOptions,
}
