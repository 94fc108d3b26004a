//! The models to use when the first one fails.

use crate::embedded;
use crate::error::Result;
use crate::notices::Notices;
use crate::request_limits::RequestLimits;
use crate::settings::Settings;
use crate::target::ModelTarget;
use crate::transport::http_model;
use futures_util::TryFutureExt as _;
use rondo_core::{Model, ModelStream};
use rondo_http::{HttpModel, RequestLimit};
use rondo_types::{ErrorClass, ModelError, ModelInfo, ModelRequest, Profile, ServerAddress};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Returns the usable fallbacks. One without a key is skipped with a note, since the configuration may be
/// shared by machines that have different keys.
///
/// # Errors
/// When one names an unknown provider, or a model that cannot do what the profile needs.
pub fn choose(
    first: &ModelTarget,
    profile: &Profile,
    tools: usize,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Vec<ModelTarget>> {
    let mut usable = Vec::new();
    for target in first.fallbacks(settings)? {
        if let Err(error) = target.check_key(settings) {
            let name = target.full_name();
            notices.note(&format!("fallback `{name}` is left out: {}", error.line()));
            continue;
        }
        target.check(profile, tools)?;
        usable.push(target);
    }
    Ok(usable)
}

/// Builds the models of the targets, in their order.
///
/// # Errors
/// When a provider's settings are invalid.
pub(crate) fn models(
    targets: &[ModelTarget],
    profile: &Arc<Profile>,
    settings: &Settings,
    limits: &RequestLimits,
) -> Result<Vec<Arc<dyn Model>>> {
    let model = |target| fallback(target, profile, settings, limits);
    targets.iter().map(model).collect()
}

fn fallback(
    target: &ModelTarget,
    profile: &Arc<Profile>,
    settings: &Settings,
    limits: &RequestLimits,
) -> Result<Arc<dyn Model>> {
    if let Some(wanted) = &target.weights {
        return embedded::fallback(target, wanted, settings);
    }
    let key = target.key_in_env(settings);
    let known = key.is_some() || target.provider.api_key_command.is_none();
    let dialect = target.dialect_under(profile);
    let limit = limits.of(target);
    let model = http_model(target, key, dialect, profile.streaming, settings)?;
    let model = model.with_request_limit(limit.clone());
    if known {
        return Ok(Arc::new(model));
    }
    Ok(Arc::new(LateModel {
        info: model.info(),
        server: model.server(),
        base_url: model.base_url(),
        late: Arc::new(LateModelParts {
            target: target.clone(),
            profile: Arc::clone(profile),
            settings: settings.clone(),
            limit,
            model: OnceCell::new(),
        }),
    }))
}

/// A model whose key is printed by a command, which runs at the first request.
struct LateModel {
    info: ModelInfo,
    server: Option<ServerAddress>,
    base_url: Option<String>,
    late: Arc<LateModelParts>,
}

struct LateModelParts {
    target: ModelTarget,
    profile: Arc<Profile>,
    settings: Settings,
    limit: RequestLimit,
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

impl LateModelParts {
    async fn model(&self) -> Result<&HttpModel, ModelError> {
        let built = self.model.get_or_try_init(|| async {
            let key = self.target.key(&self.settings).await?;
            let dialect = self.target.dialect_under(&self.profile);
            let streaming = self.profile.streaming;
            let model = http_model(&self.target, key, dialect, streaming, &self.settings)?;
            Ok(model.with_request_limit(self.limit.clone()))
        });
        let failed =
            |error: crate::error::SetupError| ModelError::new(ErrorClass::Auth, error.line());
        built.await.map_err(failed)
    }
}
