//! Texts of hosts for events whose fields are words of the program.

use rondo_types::{ErrorClass, InDoubtDecision};

/// Returns the text for a failed request that is sent again; the provider's name follows it.
#[must_use]
pub fn failed_request(class: ErrorClass, status: Option<u16>) -> String {
    let named = match class {
        ErrorClass::RateLimited => " (too many requests)",
        ErrorClass::Overloaded => " (overload)",
        _ => "",
    };
    if let Some(status) = status {
        return format!("HTTP {status}{named} from");
    }
    let what = match class {
        ErrorClass::RateLimited => "too many requests at",
        ErrorClass::Overloaded => "overload at",
        ErrorClass::Server => "server error at",
        ErrorClass::Network => "connection failure at",
        ErrorClass::FirstByteTimeout => "no reply in time from",
        ErrorClass::IdleTimeout => "the reply stalled at",
        ErrorClass::StepTimeout => "the reply took too long at",
        ErrorClass::Protocol => "a broken reply from",
        _ => "the request failed at",
    };
    what.to_owned()
}

/// Returns the text for a call that a crash interrupted.
#[must_use]
pub fn in_doubt(name: &str, decision: InDoubtDecision, still_running: bool) -> String {
    let what = match decision {
        InDoubtDecision::Retry if still_running => "still running, waiting for it",
        InDoubtDecision::Done => "it had ended, and its result was found",
        InDoubtDecision::Retry => "running it again",
        InDoubtDecision::Ask => "you are asked whether to run it again",
        InDoubtDecision::Fail => "it is not run again, and the model is told",
    };
    format!("`{name}` was running when the turn was cut off: {what}")
}

/// Returns the text of a failed call's result as a person reads it: without the error's code, which is beside the call
/// (`error (denied): no`), and without the details of arguments that do not fit, which the text has in words already.
#[must_use]
pub fn without_code(text: &str) -> &str {
    let error = text.strip_prefix("error (");
    let parts = error.and_then(|it| it.split_once("): "));
    let is_code = |it: &str| it.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let said = parts.filter(|it| is_code(it.0)).map_or(text, |it| it.1);
    match said.rsplit_once('\n') {
        Some((words, details)) if details.starts_with("{\"violations\":[") => words,
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_said_in_words_alone() {
        assert_eq!(without_code("error (denied): no"), "no");
        assert_eq!(without_code("error (Of mine): no"), "error (Of mine): no");
        let details = r#"{"violations":[{"path":"/path","what":"is missing"}]}"#;
        let misfit =
            format!("error (invalid_args): it does not fit:\n- /path: is missing\n{details}");
        assert_eq!(
            without_code(&misfit),
            "it does not fit:\n- /path: is missing"
        );
    }
}
