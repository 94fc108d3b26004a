//! The table of all routes, and the router that is made from it.

use super::call::Call;
use super::chats::{self, Chat, ChatList, CurrentUser, MessageList, UsageSums};
use super::error::ApiError;
use super::inbound::{self, DurableSubmission, NewAnswer, NewMessage};
use super::route::{AnswerShape, Handler, Parameter, ParameterPlace, Route, shape};
use super::service::Readiness;
use super::{Shared, events, files, service};
use crate::users::Role;
use axum::Router;
use axum::extract::Request;
use axum::extract::path::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use std::sync::Arc;

const AFTER_NUMBER: Parameter = Parameter {
    name: "after",
    place: ParameterPlace::Query,
    help: "Skips messages up to this number.",
    schema: r#"{"type": "integer", "minimum": 0, "maximum": 9007199254740991}"#,
};
const AFTER_NAME: Parameter = Parameter {
    name: "after",
    place: ParameterPlace::Query,
    help: "Skips chats up to this name.",
    schema: r#"{"type": "string", "maxLength": 64}"#,
};
const LIMIT: Parameter = Parameter {
    name: "limit",
    place: ParameterPlace::Query,
    help: "Maximum number of items to return.",
    schema: r#"{"type": "integer", "minimum": 1, "maximum": 100, "default": 100}"#,
};
const KEY: Parameter = Parameter {
    name: "Idempotency-Key",
    place: ParameterPlace::Header,
    help: "Name of the submission within its chat: a repeated submission counts once, and a different one with the same name is refused with 409.",
    schema: r#"{"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,100}$"}"#,
};
const LAST_EVENT: Parameter = Parameter {
    name: "Last-Event-ID",
    place: ParameterPlace::Header,
    help: "The `id` of the last handled event; the stream continues after it.",
    schema: r#"{"type": "string", "maxLength": 400}"#,
};
const EVENTS_FROM: Parameter = Parameter {
    name: "from",
    place: ParameterPlace::Query,
    help: "Without `Last-Event-ID`: `start` for all events of the chat's session, `now` for new ones only.",
    schema: r#"{"enum": ["start", "now"], "default": "start"}"#,
};

/// Returns all routes.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = service_routes();
    routes.extend(user_routes());
    routes.extend(chat_routes());
    routes.extend(submission_routes());
    routes
}

fn service_routes() -> Vec<Route> {
    vec![
        Route {
            method: Method::GET,
            path: "/healthz",
            name: "health",
            summary: "Succeeds if the process responds.",
            handler: Handler::Open(|call| Box::pin(service::health(call))),
            parameters: &[],
            request: None,
            answer: AnswerShape::other("text/plain", "It does."),
            errors: &[],
        },
        Route {
            method: Method::GET,
            path: "/readyz",
            name: "readiness",
            summary: "Succeeds if messages can be accepted: the journal is readable, every channel receives, and the hub is not stopping.",
            handler: Handler::Open(|call| Box::pin(service::readiness(call))),
            parameters: &[],
            request: None,
            answer: AnswerShape::json::<Readiness>(200, "They can."),
            errors: &[503],
        },
        Route {
            method: Method::GET,
            path: "/openapi.json",
            name: "openapi",
            summary: "This description.",
            handler: Handler::Open(|call| Box::pin(service::openapi(call))),
            parameters: &[],
            request: None,
            answer: AnswerShape::other("application/json", "The description."),
            errors: &[],
        },
        Route {
            method: Method::GET,
            path: "/metrics",
            name: "metrics",
            summary: "The hub's metrics in the Prometheus text format.",
            handler: Handler::Users(Role::Owner, |call, _| Box::pin(service::metrics(call))),
            parameters: &[],
            request: None,
            answer: AnswerShape::other("text/plain", "The figures."),
            errors: &[],
        },
    ]
}

fn user_routes() -> Vec<Route> {
    vec![
        Route {
            method: Method::GET,
            path: "/v1/me",
            name: "me",
            summary: "The user whose key this is.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(chats::me(call, caller))
            }),
            parameters: &[],
            request: None,
            answer: AnswerShape::json::<CurrentUser>(200, "The user."),
            errors: &[],
        },
        Route {
            method: Method::GET,
            path: "/v1/usage",
            name: "usage",
            summary: "Model usage of the caller's chats.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(chats::usage(call, caller))
            }),
            parameters: &[],
            request: None,
            answer: AnswerShape::json::<UsageSums>(200, "The sums."),
            errors: &[],
        },
        Route {
            method: Method::GET,
            path: "/v1/chats",
            name: "list_chats",
            summary: "The caller's chats, in order of their names.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(chats::list(call, caller))
            }),
            parameters: &[AFTER_NAME, LIMIT],
            request: None,
            answer: AnswerShape::json::<ChatList>(200, "The chats."),
            errors: &[],
        },
    ]
}

fn chat_routes() -> Vec<Route> {
    vec![
        Route {
            method: Method::GET,
            path: "/v1/chats/{chat}",
            name: "get_chat",
            summary: "A chat of the caller: its session and open questions.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(chats::get(call, caller))
            }),
            parameters: &[],
            request: None,
            answer: AnswerShape::json::<Chat>(200, "The chat."),
            errors: &[404],
        },
        Route {
            method: Method::GET,
            path: "/v1/chats/{chat}/messages",
            name: "list_messages",
            summary: "Messages sent to the chat, oldest first. The newest 1000 messages are kept.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(chats::messages(call, caller))
            }),
            parameters: &[AFTER_NUMBER, LIMIT],
            request: None,
            answer: AnswerShape::json::<MessageList>(200, "The messages."),
            errors: &[404],
        },
        Route {
            method: Method::GET,
            path: "/v1/chats/{chat}/messages/{message}/files/{file}",
            name: "get_file",
            summary: "A file attached to a message of the chat, by its index from 0.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(files::get(call, caller))
            }),
            parameters: &[],
            request: None,
            answer: AnswerShape::other("application/octet-stream", "Its bytes."),
            errors: &[404],
        },
        Route {
            method: Method::GET,
            path: "/v1/chats/{chat}/events",
            name: "stream_events",
            summary: "Events of the chat as server-sent events: each has an `id` to resume from and JSON as `data`.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(events::stream(call, caller))
            }),
            parameters: &[LAST_EVENT, EVENTS_FROM],
            request: None,
            answer: AnswerShape::other("text/event-stream", "The events."),
            errors: &[404],
        },
    ]
}

fn submission_routes() -> Vec<Route> {
    vec![
        Route {
            method: Method::POST,
            path: "/v1/chats/{chat}/messages",
            name: "send_message",
            summary: "Sends a message to the agent; the first message creates the chat. The message is durable once the response arrives.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(inbound::message(call, caller))
            }),
            parameters: &[KEY],
            request: Some(shape::<NewMessage>()),
            answer: AnswerShape::json::<DurableSubmission>(202, "Accepted, now or earlier."),
            errors: &[408, 409, 413, 415],
        },
        Route {
            method: Method::POST,
            path: "/v1/chats/{chat}/answers",
            name: "answer_question",
            summary: "Answers a question that was sent to the chat.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(inbound::answer(call, caller))
            }),
            parameters: &[KEY],
            request: Some(shape::<NewAnswer>()),
            answer: AnswerShape::json::<DurableSubmission>(202, "Accepted, now or earlier."),
            errors: &[404, 408, 409, 413, 415],
        },
        Route {
            method: Method::POST,
            path: "/v1/chats/{chat}/cancel",
            name: "cancel_turn",
            summary: "Stops the running turn of the chat, as the command `/stop` does.",
            handler: Handler::Users(Role::Guest, |call, caller| {
                Box::pin(inbound::cancel(call, caller))
            }),
            parameters: &[KEY],
            request: None,
            answer: AnswerShape::json::<DurableSubmission>(202, "Accepted, now or earlier."),
            errors: &[404, 409],
        },
    ]
}

/// Makes the router. Whatever is in no route takes a valid key, too: strangers learn nothing of what there is.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let mut router = Router::new();
    for route in routes() {
        let filter = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::GET);
        let shared = Arc::clone(&shared);
        let handler = route.handler;
        let answering = move |params: Result<RawPathParams, RawPathParamsRejection>,
                              request: Request| {
            let call = Call::new(Arc::clone(&shared), values(params), request);
            answered(handler, call)
        };
        router = router.route(route.path, on(filter, answering));
    }
    let refusing = move |status: StatusCode, message: &'static str| {
        let shared = Arc::clone(&shared);
        move |request: Request| {
            let call = Call::new(shared, Vec::new(), request);
            refused(call, status, message)
        }
    };
    router
        .fallback(refusing(StatusCode::NOT_FOUND, "there is no such route"))
        .method_not_allowed_fallback(refusing(
            StatusCode::METHOD_NOT_ALLOWED,
            "the route does not have that method",
        ))
}

fn values(params: Result<RawPathParams, RawPathParamsRejection>) -> Vec<String> {
    // Bytes that are not UTF-8 are not a name of anything.
    params.map_or_else(
        |_| Vec::new(),
        |params| params.iter().map(|(_, value)| value.to_owned()).collect(),
    )
}

async fn answered(handler: Handler, call: Call) -> Response {
    let answer = match handler {
        Handler::Open(handler) => handler(call).await,
        Handler::Users(role, handler) => match call.caller(role).await {
            Ok(caller) => handler(call, caller).await,
            Err(error) => Err(error),
        },
    };
    answer.unwrap_or_else(|error| error.into_response())
}

async fn refused(call: Call, status: StatusCode, message: &'static str) -> Response {
    let error = match call.caller(Role::Guest).await {
        Err(error) => error,
        Ok(_) if status == StatusCode::NOT_FOUND => ApiError::not_found(message),
        Ok(_) => ApiError::new(status, "wrong_method", message),
    };
    error.into_response()
}
