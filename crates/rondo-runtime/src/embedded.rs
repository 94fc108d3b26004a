//! Builds the ports of the built-in model, from weights on this machine.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::notices::Notices;
use crate::settings::Settings;
use crate::target::ModelTarget;
use crate::weights::{FetchOptions, Store, WeightsSource, fetch};
use rondo_core::Model;
use rondo_core::ports::Embedder;
use rondo_types::units::size;
#[cfg(feature = "local")]
use rondo_types::{ErrorClass, ModelError};
use std::path::PathBuf;
use std::sync::Arc;

/// The default profile of the built-in model.
pub const PROFILE: &str = "local";
/// The file that marks that the note on the default model was shown.
const TOLD_FILE: &str = "told-of-local-model";

/// The directory of the cache in which the state of prompts' beginnings is kept.
#[cfg(feature = "local")]
const PROMPT_CACHE_DIR: &str = "prompts";

/// Downloads the weights of a target, if it needs any that are not on this machine.
///
/// # Errors
/// When they do not exist, or downloads are not allowed.
///
/// # Cancel safety
/// Cancel safe: a partial download is kept and continued the next time.
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

/// Tells the user once that the default model is used, how large it is, and how to choose another.
fn tell_once(wanted: &WeightsSource, settings: &Settings, notices: &dyn Notices) {
    let told = settings.paths.state.join(TOLD_FILE);
    if told.exists() {
        return;
    }
    let bytes = match wanted {
        WeightsSource::Known(model) => format!(" ({})", size(model.bytes)),
        WeightsSource::File(_) | WeightsSource::Hub { .. } => String::new(),
    };
    notices.note(&format!(
        "no model or API key configured; using the built-in `local/{}`{bytes}, which runs on this \
         machine without an account. It is small: good for a first look. For real work: `export \
         OPENAI_API_KEY=...` or pass `-m provider/model`",
        wanted.name()
    ));
    // If it cannot be written, the note is shown again the next time.
    let _ = std::fs::create_dir_all(&settings.paths.state);
    let _ = std::fs::write(told, "");
}

/// Builds the model port over weights on this machine. They are loaded at the first request.
///
/// # Errors
/// When this build has no engine, or no thread can be started.
#[cfg(feature = "local")]
pub fn model(
    target: &ModelTarget,
    weights: PathBuf,
    settings: &Settings,
) -> Result<Arc<dyn Model>> {
    let mut options = rondo_local::LocalOptions::new(weights, target.model.clone());
    options.prompt_cache = Some(settings.paths.cache.join(PROMPT_CACHE_DIR));
    let model = rondo_local::LocalModel::start(options);
    let model = model.map_err(|err| SetupError::caused(SetupErrorKind::Other, err))?;
    Ok(Arc::new(model))
}

/// Fails: this build does not include the engine.
#[cfg(not(feature = "local"))]
pub fn model(
    target: &ModelTarget,
    _weights: PathBuf,
    _settings: &Settings,
) -> Result<Arc<dyn Model>> {
    Err(no_engine(target))
}

#[cfg(not(feature = "local"))]
fn no_engine(target: &ModelTarget) -> SetupError {
    let name = target.full_name();
    SetupError::new(
        SetupErrorKind::Config,
        format_args!("`{name}` cannot be used: this build has no engine for local models"),
    )
    .hint("build with the feature `local`, or name the model of a server as `provider/model`")
}

/// Builds the port to a model on this machine that makes vectors. Its weights are looked for when vectors are
/// wanted, and never downloaded: no search waits for a gigabyte.
///
/// # Errors
/// When this build has no engine.
#[cfg(feature = "local")]
pub(crate) fn embedder(
    target: &ModelTarget,
    wanted: &WeightsSource,
    settings: &Settings,
) -> Result<Arc<dyn Embedder>> {
    let (wanted, store) = (wanted.clone(), Store::of(settings));
    let find = move || store.find(&wanted).ok_or_else(|| missing(&wanted));
    let embedder = rondo_local::LocalEmbedder::new(target.full_name(), find);
    Ok(Arc::new(embedder))
}

#[cfg(feature = "local")]
fn missing(wanted: &WeightsSource) -> ModelError {
    let message = match wanted {
        WeightsSource::File(path) => format!("there is no file `{}`", path.display()),
        WeightsSource::Known(_) | WeightsSource::Hub { .. } => format!(
            "its weights are not downloaded; `rondo models pull {}` fetches them",
            wanted.name()
        ),
    };
    ModelError::new(ErrorClass::NotFound, message)
}

/// Fails: this build does not include the engine.
#[cfg(not(feature = "local"))]
pub(crate) fn embedder(
    target: &ModelTarget,
    _wanted: &WeightsSource,
    _settings: &Settings,
) -> Result<Arc<dyn Embedder>> {
    Err(no_engine(target))
}

/// Builds a fallback model. Its weights must be on this machine, since a fallback does not wait for a
/// download.
///
/// # Errors
/// As [`model`], and when the weights are missing.
pub fn fallback(
    target: &ModelTarget,
    wanted: &WeightsSource,
    settings: &Settings,
) -> Result<Arc<dyn Model>> {
    let name = wanted.name();
    let path = Store::of(settings).find(wanted).ok_or_else(|| {
        SetupError::new(
            SetupErrorKind::Config,
            format_args!("the weights of the fallback `local/{name}` are not downloaded"),
        )
        .hint(format!("fetch them with `rondo models pull {name}`"))
    })?;
    model(target, path, settings)
}
