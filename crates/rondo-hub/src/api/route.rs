//! One route: what it answers to, who may use it, and what it takes and gives. The router and the published description
//! are both made from these, so that neither knows a route that the other does not.

use super::call::{Call, Caller};
use super::error::ApiError;
use crate::users::Role;
use axum::http::Method;
use axum::response::Response;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Result of a route.
pub(super) type Answer = BoxFuture<'static, Result<Response, ApiError>>;

/// A route.
pub(super) struct Route {
    pub(super) method: Method,
    /// With the names of its values in braces.
    pub(super) path: &'static str,
    /// Its name in the description.
    pub(super) name: &'static str,
    /// Summary, in a sentence.
    pub(super) summary: &'static str,
    pub(super) handler: Handler,
    pub(super) parameters: &'static [Parameter],
    pub(super) request: Option<Shape>,
    pub(super) answer: AnswerShape,
    /// The statuses of its errors, beside those that every route may have.
    pub(super) errors: &'static [u16],
}

/// Handler of a route, and its callers. Only handlers that say so accept requests without a caller.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    /// Anyone may ask.
    Open(fn(Call) -> Answer),
    /// Users of at least that role.
    Users(Role, fn(Call, Caller) -> Answer),
}

/// A value in the query or a header.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: ParameterPlace,
    pub(super) help: &'static str,
    /// Its schema, as JSON.
    pub(super) schema: &'static str,
}

/// Location of a parameter.
#[derive(Clone, Copy)]
pub(super) enum ParameterPlace {
    Query,
    Header,
}

/// Makes the schema of a type.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// Successful response of a route.
pub(super) struct AnswerShape {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    /// `None` if that is not JSON, or nothing.
    pub(super) shape: Option<Shape>,
    pub(super) help: &'static str,
}

/// Returns the function that makes the schema of a type.
pub(super) fn shape<T: JsonSchema>() -> Shape {
    |generator| generator.subschema_for::<T>()
}

impl AnswerShape {
    pub(super) fn json<T: JsonSchema>(status: u16, help: &'static str) -> Self {
        Self {
            status,
            content_type: "application/json",
            shape: Some(shape::<T>()),
            help,
        }
    }

    pub(super) fn other(content_type: &'static str, help: &'static str) -> Self {
        Self {
            status: 200,
            content_type,
            shape: None,
            help,
        }
    }
}
