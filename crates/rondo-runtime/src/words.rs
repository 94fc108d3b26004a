//! Texts of hosts for events whose fields are words of the program.

use rondo_types::{ErrorClass, InDoubtDecision};
use serde_json::Value;

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

/// Returns how a call failed, by the name of its error's code; another text is returned as it is.
#[must_use]
pub fn failed_call(code: &str) -> &str {
    match code {
        "invalid_args" => "wrong arguments",
        "unknown_tool" => "unknown tool",
        "python_exception" => "Python error",
        "timeout" => "timed out",
        "not_run" => "not run",
        "in_doubt" => "outcome unknown",
        "internal" => "internal error",
        other => other,
    }
}

/// Returns why an answer was refused, with the places where it does not fit its schema in words rather than as data.
#[must_use]
pub fn refused_answer(reason: &str) -> String {
    let in_words = reason
        .split_once("JSON schema: ")
        .and_then(|(before, rest)| {
            let places: Vec<Value> = serde_json::from_str(&format!("[{rest}]")).ok()?;
            let places: Option<Vec<String>> = places.iter().map(place).collect();
            Some(format!("{before}JSON schema: {}", places?.join("; ")))
        });
    in_words.unwrap_or_else(|| reason.to_owned())
}

fn place(place: &Value) -> Option<String> {
    let (at, is) = (place.get("at")?.as_str()?, place.get("is")?.as_str()?);
    Some(match at {
        "" | "/" => is.to_owned(),
        at => format!("at `{at}`, {is}"),
    })
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
        Some((words, details)) if is_details(details) => words,
        _ => said,
    }
}

fn is_details(line: &str) -> bool {
    ["{\"violations\":[", "{\"syntax\":"]
        .iter()
        .any(|it| line.starts_with(it))
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
        let broken = "error (invalid_args): they are not JSON\n{\"syntax\":\"not JSON: eof\"}";
        assert_eq!(without_code(broken), "they are not JSON");
    }

    #[test]
    fn codes_and_places_in_a_schema_are_said_in_words() {
        assert_eq!(failed_call("invalid_args"), "wrong arguments");
        assert_eq!(failed_call("exit 1"), "exit 1");
        let reason = r#"the answer does not fit its JSON schema: {"at":"/a","is":"the value is no integer"}, {"at":"","is":"`b` is missing"}"#;
        assert_eq!(
            refused_answer(reason),
            "the answer does not fit its JSON schema: at `/a`, the value is no integer; `b` is missing"
        );
        assert_eq!(refused_answer("too long"), "too long");
    }
}
