//! The model in the box: weights that are here, behind the model port.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::notices::Notices;
use crate::settings::Settings;
use crate::target::ModelTarget;
use crate::weights::{FetchOptions, Store, Wanted, fetch, size};
use rondo_core::Model;
use std::path::PathBuf;
use std::sync::Arc;

/// The profile of the built-in model, where none is named.
pub const PROFILE: &str = "local";
/// The file whose being there says that the user was told of the default model.
const TOLD_FILE: &str = "told-of-local-model";

/// Fetches the weights of a target, if it needs any that are not here.
///
/// # Errors
/// When they do not exist, or nothing may be fetched.
///
/// # Cancel safety
/// Cancel safe: what came is kept for the next time.
pub async fn prepare(
    target: &ModelTarget,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Option<PathBuf>> {
    let Some(wanted) = &target.weights else {
        return Ok(None);
    };
    if settings.values.model.is_none() {
        tell_once(wanted, settings, notices);
    }
    let options = FetchOptions::of(settings);
    fetch(wanted, &Store::of(settings), &options, notices)
        .await
        .map(Some)
}

/// Says that the default model is asked, how large it is, and how to ask another.
fn tell_once(wanted: &Wanted, settings: &Settings, notices: &dyn Notices) {
    let told = settings.paths.state.join(TOLD_FILE);
    if told.exists() {
        return;
    }
    let bytes = match wanted {
        Wanted::Known(model) => format!(" ({})", size(model.bytes)),
        Wanted::File(_) | Wanted::Hub { .. } => String::new(),
    };
    notices.note(&format!(
        "no model or API key configured; using the built-in `local/{}`{bytes}, which runs on this \
         machine without an account. It is small: good for a first look. For real work: `export \
         OPENAI_API_KEY=...` or pass `-m provider/model`",
        wanted.name()
    ));
    // Where it cannot be written down, it is said again.
    let _ = std::fs::create_dir_all(&settings.paths.state);
    let _ = std::fs::write(told, "");
}

/// Builds the model over weights that are here. They are loaded when it is first asked.
///
/// # Errors
/// When this build has no engine, or no thread can be started.
#[cfg(feature = "local")]
pub fn model(target: &ModelTarget, weights: PathBuf) -> Result<Arc<dyn Model>> {
    let options = rondo_local::LocalOptions::new(weights, target.model.clone());
    let model = rondo_local::LocalModel::start(options);
    let model = model.map_err(|err| SetupError::caused(SetupErrorKind::Other, err))?;
    Ok(Arc::new(model))
}

/// Refuses: the engine was left out of this build.
#[cfg(not(feature = "local"))]
pub fn model(target: &ModelTarget, _weights: PathBuf) -> Result<Arc<dyn Model>> {
    let name = target.full_name();
    Err(SetupError::new(
        SetupErrorKind::Config,
        format_args!("`{name}` cannot be asked: this build has no engine for local models"),
    )
    .hint("build with the feature `local`, or ask a server with `-m provider/model`"))
}

/// Builds the model to fall back on; its weights must be here, since a fallback waits for no download.
///
/// # Errors
/// As [`model`], and when the weights are not here.
pub fn fallback(
    target: &ModelTarget,
    wanted: &Wanted,
    settings: &Settings,
) -> Result<Arc<dyn Model>> {
    let name = wanted.name();
    let path = Store::of(settings).find(wanted).ok_or_else(|| {
        SetupError::new(
            SetupErrorKind::Config,
            format_args!("the weights of the fallback `local/{name}` are not here"),
        )
        .hint(format!("fetch them with `rondo models pull {name}`"))
    })?;
    model(target, path)
}
