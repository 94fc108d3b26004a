//! Reads the parameters of a request: JSON, or a form with files.

use crate::Recorded;
use bytes::Bytes;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The parameters of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Form {
    pub(super) fields: BTreeMap<String, Value>,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Json(Json),
    /// From a form, where everything is text.
    Text(String),
    File(SentFile),
}

/// A file as it was uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentFile {
    /// Name of the file.
    pub name: String,
    /// Content of the file.
    pub bytes: Bytes,
}

impl Form {
    /// Reads a request's parameters.
    pub(super) fn read(request: &Recorded) -> Result<Self, String> {
        let kind = request.header("content-type").unwrap_or_default();
        if let Some(boundary) = kind.strip_prefix("multipart/form-data; boundary=") {
            return multipart(&request.body, boundary.trim_matches('"'));
        }
        if request.body.is_empty() {
            return Ok(Self::default());
        }
        if !kind.starts_with("application/json") {
            return Err(format!("`{kind}` is no kind of parameters"));
        }
        let parsed = serde_json::from_slice::<BTreeMap<String, Json>>(&request.body);
        let fields = parsed.map_err(|err| format!("the parameters are not JSON: {err}"))?;
        let fields = fields.into_iter().map(|(name, it)| (name, Value::Json(it)));
        Ok(Self {
            fields: fields.collect(),
        })
    }

    /// Returns a parameter as JSON; text of a form is read as JSON if it is some.
    pub(super) fn json(&self, name: &str) -> Json {
        match self.fields.get(name) {
            Some(Value::Json(value)) => value.clone(),
            Some(Value::Text(text)) => {
                serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.clone()))
            }
            Some(Value::File(_)) | None => Json::Null,
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.json(name).as_i64()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.fields.get(name) {
            Some(Value::Json(Json::String(text)) | Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn file(&self, name: &str) -> Option<SentFile> {
        match self.fields.get(name) {
            Some(Value::File(file)) => Some(file.clone()),
            _ => None,
        }
    }

    /// Returns whether another parameter refers to the file of this name.
    pub(super) fn is_attached(&self, name: &str) -> bool {
        let reference = format!("attach://{name}");
        self.fields.values().any(|it| match it {
            Value::Json(value) => value.to_string().contains(&reference),
            Value::Text(text) => text.contains(&reference),
            Value::File(_) => false,
        })
    }
}

/// RFC 7578, without encodings of parts.
fn multipart(body: &Bytes, boundary: &str) -> Result<Form, String> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let mut form = Form::default();
    let mut at = format!("--{boundary}").len();
    if !body.starts_with(format!("--{boundary}").as_bytes()) {
        return Err("the form does not begin with its boundary".to_owned());
    }
    loop {
        let rest = body.slice(at..);
        if rest.starts_with(b"--") {
            return Ok(form);
        }
        let begin = at + 2;
        let end = find(&body[begin..], &delimiter).ok_or("a part of the form has no end")?;
        let (name, value) = part(&body.slice(begin..begin + end))?;
        form.fields.insert(name, value);
        at = begin + end + delimiter.len();
    }
}

fn part(bytes: &Bytes) -> Result<(String, Value), String> {
    let head_end = find(bytes, b"\r\n\r\n").ok_or("a part of the form has no head")?;
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let content = bytes.slice(head_end + 4..);
    let name = quoted(&head, "; name=\"").ok_or("a part of the form has no name")?;
    let value = match quoted(&head, "; filename=\"") {
        Some(file) => Value::File(SentFile {
            name: file,
            bytes: content,
        }),
        None => Value::Text(String::from_utf8_lossy(&content).into_owned()),
    };
    Ok((name, value))
}

fn quoted(head: &str, before: &str) -> Option<String> {
    let (_, rest) = head.split_once(before)?;
    Some(rest.split('"').next()?.to_owned())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|at| at == what)
}
