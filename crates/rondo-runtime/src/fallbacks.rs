//! The models that are asked when the first one fails.

use crate::embedded;
use crate::error::Result;
use crate::notices::Notices;
use crate::settings::Settings;
use crate::target::Choice;
use crate::transport::http_model;
use futures_util::TryFutureExt as _;
use rondo_core::{Model, ModelStream};
use rondo_http::HttpModel;
use rondo_types::{ErrorClass, ModelError, ModelInfo, ModelRequest, Profile, ServerAddress};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Returns the fallbacks that can be asked. One without a key is left out with a note: whoever
/// configured it for all machines has not set it on this one, and the first model may do.
///
/// # Errors
/// When one names no known provider, or is known not to do what the profile needs.
pub fn choose(
    first: &Choice,
    profile: &Profile,
    tools: usize,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Vec<Choice>> {
    let mut usable = Vec::new();
    for choice in first.fallbacks(settings)? {
        if let Err(error) = choice.check_key(settings) {
            let name = choice.full_name();
            notices.note(&format!("fallback `{name}` is left out: {}", error.line()));
            continue;
        }
        choice.check(profile, tools)?;
        usable.push(choice);
    }
    Ok(usable)
}

/// Builds the models of the choices, in their order.
///
/// # Errors
/// When a provider's settings make no sense.
pub fn models(
    choices: &[Choice],
    profile: &Profile,
    settings: &Settings,
) -> Result<Vec<Arc<dyn Model>>> {
    let model = |choice| fallback(choice, profile, settings);
    choices.iter().map(model).collect()
}

fn fallback(choice: &Choice, profile: &Profile, settings: &Settings) -> Result<Arc<dyn Model>> {
    if let Some(wanted) = &choice.weights {
        return embedded::fallback(choice, wanted, settings);
    }
    let key = choice.key_in_env(settings);
    let known = key.is_some() || choice.provider.api_key_command.is_none();
    let dialect = choice.dialect_under(profile);
    let model = http_model(choice, key, dialect, profile.streaming, settings)?;
    if known {
        return Ok(Arc::new(model));
    }
    Ok(Arc::new(LateModel {
        info: model.info(),
        server: model.server(),
        base_url: model.base_url(),
        late: Arc::new(Late {
            choice: choice.clone(),
            profile: profile.clone(),
            settings: settings.clone(),
            model: OnceCell::new(),
        }),
    }))
}

/// A model whose key is printed by a command, which runs when the model is first asked.
struct LateModel {
    info: ModelInfo,
    server: Option<ServerAddress>,
    base_url: Option<String>,
    late: Arc<Late>,
}

struct Late {
    choice: Choice,
    profile: Profile,
    settings: Settings,
    model: OnceCell<HttpModel>,
}

impl Model for LateModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn server(&self) -> Option<ServerAddress> {
        self.server.clone()
    }

    fn base_url(&self) -> Option<String> {
        self.base_url.clone()
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let late = Arc::clone(&self.late);
        let opened = async move { late.model().await.map(|model| model.stream(request)) };
        Box::pin(opened.try_flatten_stream())
    }
}

impl Late {
    async fn model(&self) -> Result<&HttpModel, ModelError> {
        let built = self.model.get_or_try_init(|| async {
            let key = self.choice.key(&self.settings).await?;
            let dialect = self.choice.dialect_under(&self.profile);
            let streaming = self.profile.streaming;
            http_model(&self.choice, key, dialect, streaming, &self.settings)
        });
        let failed =
            |error: crate::error::SetupError| ModelError::new(ErrorClass::Auth, error.line());
        built.await.map_err(failed)
    }
}
