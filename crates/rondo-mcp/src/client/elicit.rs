//! Questions of a server, put to the user by the call that it works on.

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputResponses,
};
use rondo_core::ports::{Asker, NotAnswered};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;

/// The bound on the questions of one reply.
const QUESTIONS_MAX: usize = 8;

/// Returns the outcome of a user who does not answer.
pub(super) fn declined() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

/// Returns the outcome of a question that was withdrawn.
pub(super) fn cancelled() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Cancel)
}

/// Asks the user a server's question. The time until they answer is not the server's: `beat` is called at the end.
pub(super) async fn ask(
    server: &str,
    request: &ElicitRequestParams,
    asker: &Asker,
    beat: &Arc<Notify>,
) -> ElicitResult {
    let ElicitRequestParams::FormElicitationParams {
        message,
        requested_schema,
        ..
    } = request
    else {
        // Opening an address that a server names is not offered.
        return declined();
    };
    let prompt = format!("The server `{server}` asks: {message}");
    let schema = serde_json::to_value(requested_schema).unwrap_or_default();
    let has_fields = schema.get("properties").and_then(Value::as_object);
    let answer = match has_fields.is_some_and(|it| !it.is_empty()) {
        true => asker
            .input(prompt, schema.clone())
            .await
            .map(|value| with_defaults(value, &schema)),
        false => asker.approval(prompt).await.map(|()| json!({})),
    };
    beat.notify_one();
    match answer {
        Ok(value) => ElicitResult::new(ElicitationAction::Accept).with_content(value),
        Err(NotAnswered::Cancelled) => cancelled(),
        Err(_) => declined(),
    }
}

/// Adds the server's defaults for the values that the user left out.
fn with_defaults(mut value: Value, schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(fields) = value.as_object_mut() else {
        return value;
    };
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default") {
            fields
                .entry(name.clone())
                .or_insert_with(|| default.clone());
        }
    }
    value
}

/// Answers what a server needs to know before it can end a call.
///
/// # Errors
/// When it asks for what is not offered, or too much.
pub(crate) async fn input_responses(
    server: &str,
    requests: InputRequests,
    asker: &Asker,
    beat: &Arc<Notify>,
) -> Result<InputResponses, String> {
    if requests.len() > QUESTIONS_MAX {
        return Err(format!(
            "it asks more than {QUESTIONS_MAX} questions at once"
        ));
    }
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let InputRequest::Elicitation(request) = request else {
            return Err("it asks for a model or for folders, which are not offered".to_owned());
        };
        let answer = ask(server, &request.params, asker, beat).await;
        responses.insert(key, serde_json::to_value(answer).unwrap_or_default());
    }
    Ok(responses)
}
