//! Tells how the hub is: for supervisors, proxies and collectors of figures.

use super::call::Call;
use super::error::ApiError;
use super::{openapi, routes};
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
        return Err(ApiError::later("the hub stops"));
    }
    let ready = call.shared.core()?.try_storage().await;
    ready.map_err(ApiError::later)?;
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
    let mut response = figures.text(hub, running, counts).into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, METRICS_TYPE);
    Ok(response)
}
