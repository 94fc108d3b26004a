//! `rondo doctor --review`: shows what sandboxed commands left changed in protected files, and forgets it once the person
//! accepts it.

use super::super::report::{current_dir, write_failed};
use crate::cli::DoctorArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{Output, has_person};
use rondo_runtime::env::Env;
use rondo_runtime::review::{Difference, DifferenceKind, QUESTION, Review, described};
use rondo_runtime::settings::Settings;
use rondo_runtime::{Layer, SetupError};
use serde_json::{Value, json};

/// Runs the command.
pub(super) fn run(args: &DoctorArgs, env: Env, output: &Output) -> Result<Exit> {
    // Unreadable settings must not keep a person from the review.
    let mut broken = |_: SetupError| Ok(());
    let settings =
        Settings::load_around(env, current_dir()?, Layer::default(), output, &mut broken)?;
    let review = Review::of(&settings);
    let differences = review.differences();
    if args.json {
        let text = format!("{}\n", as_json(&differences));
        output.json(&text).map_err(write_failed)?;
    } else {
        let text = match differences.is_empty() {
            true => format!("nothing to review in {}\n", settings.directory.display()),
            false => described(&differences),
        };
        output.words(&text).map_err(write_failed)?;
    }
    if differences.is_empty() {
        return Ok(Exit::Answer);
    }
    let asks = !args.accept && !args.json && has_person();
    let is_accepted = args.accept || asks && output.is_confirmed(QUESTION);
    if !is_accepted {
        return Ok(Exit::Error);
    }
    if review.differences() != differences {
        output.note(
            "the files changed after they were shown, so nothing was accepted: review them again",
        );
        return Ok(Exit::Error);
    }
    review.accept()?;
    output.note("accepted: Rondo works here as before");
    Ok(Exit::Answer)
}

fn as_json(differences: &[Difference]) -> Value {
    let text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_deref()?;
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    };
    let kind = |kind| match kind {
        DifferenceKind::Added => "added",
        DifferenceKind::Changed => "changed",
        DifferenceKind::Removed => "removed",
        DifferenceKind::Unchecked => "unchecked",
    };
    let listed = differences.iter().map(|it| {
        json!({
            "folder": it.root.display().to_string(),
            "path": it.path.display().to_string(),
            "kind": kind(it.kind),
            "before": text(&it.before),
            "now": text(&it.now),
            "before_bytes": it.before.as_ref().map(Vec::len),
            "now_bytes": it.now.as_ref().map(Vec::len),
        })
    });
    Value::Array(listed.collect())
}
