//! Collects `reasoning_details`, which are sent back unchanged.

use serde_json::{Map, Value};

/// The type of a detail that comes in pieces.
const TEXT_TYPE: &str = "reasoning.text";

/// `reasoning_details` in their order, raw: signed models want them back unchanged. Only the pieces
/// of one text are joined, since its signature is on the whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Details {
    list: Vec<String>,
    open: Option<OpenDetail>,
}

/// A text that more may follow.
#[derive(Debug, Clone, PartialEq)]
struct OpenDetail {
    /// The first piece, which goes back as it is when no other came.
    raw: String,
    fields: Map<String, Value>,
    text: String,
    joined: bool,
}

impl Details {
    /// Takes a detail.
    pub(super) fn push(&mut self, raw: &str) {
        let Some((mut fields, text)) = read_text(raw) else {
            self.close();
            self.list.push(raw.to_owned());
            return;
        };
        let open = self.open.as_mut().filter(|open| open.takes(&fields));
        if let Some(open) = open {
            open.text.push_str(&text);
            open.fields.append(&mut fields);
            open.joined = true;
            return;
        }
        self.close();
        self.open = Some(OpenDetail {
            raw: raw.to_owned(),
            fields,
            text,
            joined: false,
        });
    }

    /// Returns all details.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.close();
        self.list
    }

    fn close(&mut self) {
        let closed = self.open.take().map(OpenDetail::into_json);
        self.list.extend(closed);
    }
}

impl OpenDetail {
    /// A signature ends a text; without an index nothing says that two pieces belong together.
    fn takes(&self, fields: &Map<String, Value>) -> bool {
        let index = fields.get("index");
        index.is_some()
            && index == self.fields.get("index")
            && !self.fields.contains_key("signature")
    }

    fn into_json(mut self) -> String {
        if !self.joined {
            return self.raw;
        }
        self.fields
            .insert("text".to_owned(), Value::from(self.text));
        Value::from(self.fields).to_string()
    }
}

/// Reads a text detail as its fields, without those that are null, and its text.
fn read_text(raw: &str) -> Option<(Map<String, Value>, String)> {
    let mut fields: Map<String, Value> = serde_json::from_str(raw).ok()?;
    if fields.get("type").and_then(Value::as_str) != Some(TEXT_TYPE) {
        return None;
    }
    fields.retain(|_, value| !value.is_null());
    let text = match fields.remove("text") {
        Some(Value::String(text)) => text,
        Some(_) => return None,
        None => String::new(),
    };
    Some((fields, text))
}
