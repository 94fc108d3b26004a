//! Content of a signed request.

use crate::channel::chat;
use rondo_hub::channel::{ChatKind, Inbound, InboundBody, Sender};
use rondo_types::AnswerValue;
use serde::Deserialize;

/// Bytes of a topic's name.
const TOPIC_BYTES_MAX: usize = 100;

/// A body in the channel's own form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// Text of the message.
    text: Option<String>,
    /// Which of the endpoint's conversations it belongs to.
    topic: Option<String>,
    /// An answer to a question.
    answer: Option<Answer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    token: String,
    value: AnswerValue,
}

/// Reads a request whose signature is good. A body that is not in the channel's own form is said as it is, since most
/// programs that send webhooks have a form of their own.
///
/// # Errors
/// Answer to the sender.
pub(crate) fn read(
    endpoint: &str,
    id: &str,
    seconds: u64,
    body: &[u8],
) -> Result<Inbound, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8")?;
    let (topic, body) = match serde_json::from_str::<Body>(text) {
        Ok(Body {
            text: None,
            topic,
            answer: Some(Answer { token, value }),
        }) => (topic, InboundBody::Answer { token, value }),
        Ok(Body {
            text: Some(text),
            topic,
            answer: None,
        }) => (topic, said(text, false)),
        // A program may pass on text that anyone wrote.
        _ => (None, said(text.to_owned(), true)),
    };
    let is_topic =
        |it: &String| (1..=TOPIC_BYTES_MAX).contains(&it.len()) && !it.contains(char::is_control);
    if !topic.as_ref().is_none_or(is_topic) {
        return Err("`topic` must have 1 to 100 bytes");
    }
    if matches!(&body, InboundBody::Message { text, .. } if text.trim().is_empty()) {
        return Err("the message is empty");
    }
    Ok(Inbound {
        // Endpoints choose their ids, so that they must not meet those of others.
        event_id: format!("{endpoint}/{id}"),
        chat: chat(endpoint, topic),
        chat_kind: ChatKind::Private,
        sender: Sender {
            id: endpoint.to_owned(),
            name: endpoint.to_owned(),
            is_bot: true,
        },
        mentioned: true,
        body,
        message_id: None,
        is_edit: false,
        at_ms: seconds.saturating_mul(1000),
    })
}

fn said(text: String, by_others: bool) -> InboundBody {
    InboundBody::Message {
        text,
        images: Vec::new(),
        files: Vec::new(),
        notes: Vec::new(),
        by_others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> Result<(Option<String>, String), &'static str> {
        let event = read("ci", "msg_1", 5, body.as_bytes())?;
        match event.body {
            InboundBody::Message {
                text, by_others, ..
            } => {
                assert_eq!(by_others, text == body, "what is passed on is not its own");
                Ok((event.chat.topic, text))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_body_is_read_in_its_own_form_or_as_it_is() {
        let plain = |it: &str| Ok((None, it.to_owned()));
        assert_eq!(text(r#"{"text": "hi"}"#), plain("hi"));
        let topic = Ok((Some("a".to_owned()), "hi".to_owned()));
        assert_eq!(text(r#"{"text": "hi", "topic": "a"}"#), topic);
        for body in [
            r#"{"event": "push", "text": "x"}"#,
            "just text",
            "[1]",
            r#"{"text": 5}"#,
        ] {
            assert_eq!(text(body), plain(body));
        }
        assert!(text(r#"{"text": " "}"#).is_err());
        assert!(text(r#"{"text": "x", "topic": ""}"#).is_err());
        assert!(read("ci", "m", 5, b"\xff").is_err());
    }

    #[test]
    fn an_answer_is_read() {
        let body = br#"{"answer": {"token": "t", "value": {"answer": "approve"}}}"#;
        let event = read("ci", "msg_1", 5, body).unwrap();
        let token = "t".to_owned();
        let value = AnswerValue::Approve;
        assert_eq!(event.body, InboundBody::Answer { token, value });
        assert_eq!((event.event_id.as_str(), event.at_ms), ("ci/msg_1", 5_000));
        assert_eq!(event.sender.id, "ci");
    }
}
