//! Tells how the hub is: for supervisors, proxies and collectors of figures.

use super::call::Call;
use super::error::ApiError;
use super::{metrics, openapi, routes};
use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Serialize;

/// How Prometheus names the format of the figures.
const METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// That the hub takes messages.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Readiness {
    /// Always `true`: otherwise the answer is an error.
    is_ready: bool,
}

pub(super) async fn health(_: Call) -> Result<Response, ApiError> {
    Ok("ok\n".into_response())
}

pub(super) async fn readiness(call: Call) -> Result<Response, ApiError> {
    if call.shared.stop.is_cancelled() {
        return Err(ApiError::later("the hub is stopping"));
    }
    let core = call.shared.core()?;
    let ready = core.try_storage().await;
    ready.map_err(ApiError::later)?;
    let states = core.states.all();
    // Any client may ask, so the reasons are for the log.
    if let Some((name, _)) = states.iter().find(|(_, state)| state.failure.is_some()) {
        let text = format!("the channel `{name}` is not receiving; the log says why");
        return Err(ApiError::later(text));
    }
    Ok(Json(Readiness { is_ready: true }).into_response())
}

pub(super) async fn openapi(_: Call) -> Result<Response, ApiError> {
    Ok(Json(openapi::document(&routes::routes())).into_response())
}

pub(super) async fn metrics(call: Call) -> Result<Response, ApiError> {
    let core = call.shared.core()?;
    let counts = core.outbox.counts().await;
    let counts = counts.map_err(|error| ApiError::internal(&error))?;
    let (hub, running) = (core.metrics.counted(), core.shown.running());
    let figures = &call.shared.parts()?.figures;
    let mut text = figures.text(hub, running, counts);
    text.push_str(&metrics::of_channels(&core.states.all()));
    text.push_str(&metrics::of_models(&core.metrics.models()));
    let mut response = text.into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, METRICS_TYPE);
    Ok(response)
}
