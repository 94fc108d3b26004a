//! The description of the API by OpenAPI 3.1, made from the routes and the types that they take and give.

use super::call::{CHAT_CHARS_MAX, NUMBER_MAX};
use super::error::ErrorBody;
use super::route::{Handler, ParameterPlace, Route};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Errors that every route may have, and those of users besides.
const OF_ALL: [u16; 5] = [400, 403, 421, 429, 500];
const OF_USERS: [u16; 2] = [401, 503];

/// Returns the document.
pub(super) fn document(routes: &[Route]) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|it| {
            it.definitions_path = "/components/schemas".into();
            it.meta_schema = None;
        })
        .into_generator();
    let error = generator.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &error, &mut generator);
        let path = paths
            .entry(route.path)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(methods) = path {
            methods.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rondo hub",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Chats with an agent. A chat belongs to the user whose key made it: no other user can name it.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, error: &Schema, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": responses(route, error, generator),
    });
    if let Handler::Users(role, _) = route.handler {
        set(&mut operation, "security", json!([{ "key": [] }]));
        set(
            &mut operation,
            "description",
            json!(format!("For users of the role `{role}` or above.")),
        );
    }
    if let Some(request) = route.request {
        let body = json!({
            "required": true,
            "content": { "application/json": { "schema": request(generator) } },
        });
        set(&mut operation, "requestBody", body);
    }
    operation
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value);
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let of_path = names(route.path).map(|name| {
        json!({
            "name": name,
            "in": "path",
            "required": true,
            "schema": path_schema(name),
        })
    });
    let others = route.parameters.iter().map(|it| {
        let place = match it.place {
            ParameterPlace::Query => "query",
            ParameterPlace::Header => "header",
        };
        json!({
            "name": it.name,
            "in": place,
            "required": false,
            "description": it.help,
            "schema": serde_json::from_str(it.schema).unwrap_or(Value::Bool(true)),
        })
    });
    of_path.chain(others).collect()
}

/// Returns the names in braces.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'))
}

fn path_schema(name: &str) -> Value {
    match name {
        "chat" => json!({
            "type": "string",
            "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$",
            "maxLength": CHAT_CHARS_MAX,
        }),
        _ => json!({ "type": "integer", "minimum": 0, "maximum": NUMBER_MAX }),
    }
}

fn responses(route: &Route, error: &Schema, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let answer = &route.answer;
    let schema = answer.shape.map(|it| it(generator));
    let content = match schema {
        Some(schema) => json!({ answer.content_type: { "schema": schema } }),
        None => json!({ answer.content_type: {} }),
    };
    responses.insert(
        answer.status.to_string(),
        json!({ "description": answer.help, "content": content }),
    );
    let of_users: &[u16] = match route.handler {
        Handler::Users(..) => &OF_USERS,
        Handler::Open(_) => &[],
    };
    for status in OF_ALL.iter().chain(of_users).chain(route.errors) {
        let response = json!({
            "description": meaning(*status),
            "content": { "application/json": { "schema": error } },
        });
        responses.insert(status.to_string(), response);
    }
    Value::Object(responses)
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request is malformed.",
        401 => "The key is missing or invalid.",
        403 => "The user's role does not allow it, or a page of another origin sent it.",
        404 => "Not found.",
        408 => "The body took too long to arrive.",
        409 => "A bound is reached, or the `Idempotency-Key` was used for something else.",
        413 => "The body is too large.",
        415 => "The body is not JSON.",
        421 => "The hub does not answer to that host.",
        429 => "Too many requests; `Retry-After` says when to retry.",
        500 => "The hub failed.",
        503 => "Unavailable; `Retry-After` says when to retry.",
        _ => "The request failed.",
    }
}
