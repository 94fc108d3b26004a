//! One call of a tool: its time, its cancellation, and what the server asks before it ends it.

use super::connect::{asks_for_authorisation, needs_more_scopes};
use super::elicit::input_responses;
use super::handler::Shared;
use super::words::why_failed;
use crate::config::Timeouts;
use crate::content::{self, ReadResult};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use rondo_core::ports::ToolInvocation;
use rondo_types::{ToolErrorCode, ToolOutcome};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep, timeout};

/// How often a server may ask before it ends a call.
const ROUNDS_MAX: usize = 8;
/// Why a request is given up, in the words that the server reads.
const CANCELLED: &str = "the call was cancelled";
/// How long telling the server so may take.
const CANCEL_MAX: Duration = Duration::from_secs(1);
const TOO_SLOW: &str = "the call took too long";

/// How the waiting for a reply ended.
enum Waited {
    Replied(Box<Result<ServerResult, ServiceError>>),
    /// The connection had ended before the request was on its way.
    NotSent(ServiceError),
    Cancelled,
    TooSlow,
}

/// Calls a tool of the server.
pub(crate) async fn call(
    peer: &Peer<RoleClient>,
    shared: &Arc<Shared>,
    server: &str,
    tool: &str,
    timeouts: Timeouts,
    invocation: &ToolInvocation,
) -> ReadResult {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    if let Value::Object(arguments) = &invocation.arguments {
        params.arguments = Some(arguments.clone());
    }
    let end = sleep(timeouts.call_max);
    tokio::pin!(end);
    for _ in 0..ROUNDS_MAX {
        let beat = Arc::new(Notify::new());
        let waited = round(
            peer,
            shared,
            params.clone(),
            timeouts.call,
            end.as_mut(),
            invocation,
            &beat,
        )
        .await;
        let reply = match waited {
            Waited::Replied(reply) => match *reply {
                Ok(reply) => reply,
                Err(err) => return failed(server, shared, err).into(),
            },
            Waited::NotSent(err) => {
                let said = why_failed(&err);
                let message = format!("the call was not sent to the server `{server}`: {said}");
                return ToolOutcome::error(ToolErrorCode::Failed, message).into();
            }
            Waited::Cancelled => {
                return ToolOutcome::error(ToolErrorCode::Cancelled, CANCELLED).into();
            }
            Waited::TooSlow => {
                let message = format!("the server `{server}` did not end the call in time");
                return ToolOutcome::error(ToolErrorCode::Timeout, message).into();
            }
        };
        let asked = match reply {
            ServerResult::CallToolResult(result) => return content::outcome(result),
            ServerResult::InputRequiredResult(asked) => asked,
            // A result without any content.
            ServerResult::EmptyResult(_) => return content::outcome(CallToolResult::default()),
            // One of its blocks has a type that rmcp does not know.
            ServerResult::CustomResult(custom) if custom.0.get("content").is_some() => {
                return content::outcome_of(custom.0);
            }
            _ => {
                let message = format!("the server `{server}` sent a reply that is not a result");
                return ToolOutcome::error(ToolErrorCode::Failed, message).into();
            }
        };
        if let Err(outcome) = answer(server, &mut params, asked, invocation, &beat).await {
            return outcome.into();
        }
    }
    let message =
        format!("the server `{server}` asked {ROUNDS_MAX} times and never ended the call");
    ToolOutcome::error(ToolErrorCode::Failed, message).into()
}

/// Sends the request once, and waits for its reply.
async fn round(
    peer: &Peer<RoleClient>,
    shared: &Arc<Shared>,
    params: CallToolRequestParams,
    idle_max: Duration,
    mut end: Pin<&mut Sleep>,
    invocation: &ToolInvocation,
    beat: &Arc<Notify>,
) -> Waited {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let sending = peer.send_cancellable_request(request, PeerRequestOptions::no_options());
    // A server that reads nothing must not hold the call.
    let sent = tokio::select! {
        biased;
        () = invocation.cancel.cancelled() => return Waited::Cancelled,
        sent = sending => sent,
        () = end.as_mut() => return Waited::TooSlow,
    };
    let mut handle = match sent {
        Ok(handle) => handle,
        Err(err) => return Waited::NotSent(err),
    };
    let _listening = shared.listen(
        handle.progress_token.clone(),
        invocation.progress.clone(),
        invocation.asker.clone(),
        Arc::clone(beat),
    );
    let idle = sleep(idle_max);
    tokio::pin!(idle);
    let reason = loop {
        tokio::select! {
            biased;
            reply = &mut handle.rx => {
                let reply = reply.unwrap_or(Err(ServiceError::TransportClosed));
                return Waited::Replied(Box::new(reply));
            }
            () = invocation.cancel.cancelled() => break CANCELLED,
            () = end.as_mut() => break TOO_SLOW,
            () = idle.as_mut() => break TOO_SLOW,
            () = beat.notified() => idle.set(sleep(idle_max)),
        }
    };
    // At most queued: a server that reads nothing is not waited for.
    let cancelling = handle.cancel(Some(reason.to_owned()));
    drop(timeout(CANCEL_MAX, cancelling).await);
    match reason == CANCELLED {
        true => Waited::Cancelled,
        false => Waited::TooSlow,
    }
}

/// Puts the server's questions to the user, and the answers into the next request.
async fn answer(
    server: &str,
    params: &mut CallToolRequestParams,
    asked: InputRequiredResult,
    invocation: &ToolInvocation,
    beat: &Arc<Notify>,
) -> Result<(), ToolOutcome> {
    let requests = asked.input_requests.unwrap_or_default();
    let asking = input_responses(server, requests, &invocation.asker, beat);
    let responses = tokio::select! {
        biased;
        () = invocation.cancel.cancelled() => {
            return Err(ToolOutcome::error(ToolErrorCode::Cancelled, CANCELLED));
        }
        responses = asking => responses,
    };
    let responses = responses.map_err(|why| {
        let message = format!("the server `{server}` cannot end the call: {why}");
        ToolOutcome::error(ToolErrorCode::Failed, message)
    })?;
    params.input_responses = (!responses.is_empty()).then_some(responses);
    params.request_state = asked.request_state;
    Ok(())
}

fn failed(server: &str, shared: &Shared, err: ServiceError) -> ToolOutcome {
    match err {
        ServiceError::McpError(error) => {
            let said: String = error.message.chars().take(2000).collect();
            let message = format!("the server `{server}` refused the call: {said}");
            ToolOutcome::error(ToolErrorCode::Failed, message)
        }
        ServiceError::TransportClosed => {
            let ended = match shared.flood.exceeded() {
                Some(exceeded) => format!("was ended while the call was running ({exceeded})"),
                None => "ended while the call was running".to_owned(),
            };
            let message =
                format!("the server `{server}` {ended}; it is not known whether the call was done");
            ToolOutcome::error(ToolErrorCode::InDoubt, message)
        }
        err if err.is_authorization_required() => {
            let message = format!("the server `{server}`: {}", asks_for_authorisation(server));
            ToolOutcome::error(ToolErrorCode::Failed, message)
        }
        err if needs_more_scopes(&err) => {
            let message = format!(
                "the server `{server}` requires more permissions than the user has granted: `rondo mcp login {server}` grants them"
            );
            ToolOutcome::error(ToolErrorCode::Failed, message)
        }
        err => {
            let said = why_failed(&err);
            let message = format!("the call to the server `{server}` failed: {said}");
            ToolOutcome::error(ToolErrorCode::Failed, message)
        }
    }
}
