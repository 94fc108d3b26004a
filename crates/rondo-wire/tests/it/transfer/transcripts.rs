//! Random transcripts in which every call has its one result, directly behind it and in its order.

use super::{DIALECTS, base};
use crate::support::{assistant, opaque, origin, request, tool_spec};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;
use rondo_types::{
    CallId, ContentBlock, Media, MediaKind, MediaSource, Message, ModelRequest, Opaque, Origin,
    Part, ReasoningPart, TextPart, ToolCall, ToolContent, ToolErrorCode, ToolResult,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Something that can be found again in what is sent.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) kind: Kind,
    pub(crate) message: usize,
    pub(crate) part: usize,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Texts, refusals, results and arguments, which no dialect may lose.
    Said,
    Reasoning,
    /// Provider data of another part.
    Attached,
    Opaque,
    Media,
    BrokenArguments,
}

/// A transcript with what is in it.
#[derive(Debug, Clone)]
pub(crate) struct Transcript {
    pub(crate) request: ModelRequest,
    pub(crate) marks: Vec<Mark>,
    /// How many results it has.
    pub(crate) results: usize,
}

/// A reply with the results of its calls, and what the user says behind it.
#[derive(Debug, Clone)]
struct Step {
    dialect: usize,
    /// Other origin, if it has one.
    elsewhere: Option<Elsewhere>,
    parts: Vec<Piece>,
    then: Option<Option<Picture>>,
}

#[derive(Debug, Clone, Copy)]
enum Elsewhere {
    Provider,
    Model,
}

#[derive(Debug, Clone)]
enum Piece {
    Text { empty: bool, attached: bool },
    Reasoning { attached: bool },
    Refusal,
    Opaque,
    Media(Picture),
    Call(Call),
}

#[derive(Debug, Clone)]
struct Call {
    id: u8,
    wire_id: bool,
    name: u8,
    arguments: u8,
    attached: bool,
    content: u8,
    failed: bool,
    media: Option<Picture>,
}

#[derive(Debug, Clone, Copy)]
enum Picture {
    Png,
    Tiff,
    Pdf,
    Text,
    ImageUrl,
    FileUrl,
}

pub(crate) fn transcript() -> impl Strategy<Value = Transcript> {
    (proptest::option::of(picture()), vec(step(), 0..4)).prop_map(|(shown, steps)| {
        let mut builder = Builder::default();
        builder.user(shown);
        for step in steps {
            builder.step(step);
        }
        builder.finish()
    })
}

/// A transcript of one word.
pub(crate) fn smallest() -> ModelRequest {
    let mut builder = Builder::default();
    builder.user(None);
    builder.finish().request
}

fn step() -> impl Strategy<Value = Step> {
    let then = proptest::option::of(proptest::option::of(picture()));
    let elsewhere = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Elsewhere::Provider)),
        1 => Just(Some(Elsewhere::Model)),
    ];
    (0..DIALECTS.len(), elsewhere, vec(piece(), 0..6), then).prop_map(
        |(dialect, elsewhere, parts, then)| Step {
            dialect,
            elsewhere,
            parts,
            then,
        },
    )
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        3 => (prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(empty, attached)| Piece::Text { empty, attached }),
        2 => any::<bool>().prop_map(|attached| Piece::Reasoning { attached }),
        1 => Just(Piece::Refusal),
        1 => Just(Piece::Opaque),
        1 => picture().prop_map(Piece::Media),
        4 => call().prop_map(Piece::Call),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let how = (0..4_u8, any::<bool>(), 0..4_u8, 0..4_u8, any::<bool>());
    let result = (0..4_u8, any::<bool>(), proptest::option::of(picture()));
    (how, result).prop_map(|(how, result)| {
        let (id, wire_id, name, arguments, attached) = how;
        let (content, failed, media) = result;
        Call {
            id,
            wire_id,
            name,
            arguments,
            attached,
            content,
            failed,
            media,
        }
    })
}

fn picture() -> impl Strategy<Value = Picture> {
    use Picture::{FileUrl, ImageUrl, Pdf, Png, Text, Tiff};
    Union::new([Png, Tiff, Pdf, Text, ImageUrl, FileUrl].map(Just))
}

#[derive(Default)]
struct Builder {
    messages: Vec<Arc<Message>>,
    marks: Vec<Mark>,
    results: usize,
    made: usize,
}

impl Builder {
    fn finish(self) -> Transcript {
        let parameters = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let mut request = ModelRequest {
            system: vec!["be brief".to_owned()].into(),
            messages: self.messages,
            tools: Arc::new(vec![tool_spec("f", parameters)]),
            ..request()
        };
        request.sampling.max_output_tokens = Some(500);
        Transcript {
            request,
            marks: self.marks,
            results: self.results,
        }
    }

    /// Makes a text that is found nowhere else, and remembers where it is.
    fn mark(&mut self, kind: Kind, part: usize) -> String {
        self.made += 1;
        let text = format!("mark{:04}xend", self.made);
        self.marks.push(Mark {
            kind,
            message: self.messages.len(),
            part,
            text: text.clone(),
        });
        text
    }

    fn user(&mut self, shown: Option<Picture>) {
        let mut said = Message::user(self.mark(Kind::Said, 0));
        if let Some(shown) = shown {
            said.parts.push(Part::text(""));
            let media = self.media(shown, 2);
            said.parts.push(Part::Media(media));
        }
        self.messages.push(Arc::new(said));
    }

    fn step(&mut self, step: Step) {
        let dialect = DIALECTS[step.dialect];
        let mut from = origin(dialect);
        match step.elsewhere {
            Some(Elsewhere::Provider) => from.provider = "elsewhere".to_owned(),
            Some(Elsewhere::Model) => from.model = "other-model".to_owned(),
            None => {}
        }
        let mut parts = Vec::new();
        let mut results = Vec::new();
        for piece in step.parts {
            let index = parts.len();
            let part = match piece {
                Piece::Call(asked) => {
                    let call = self.call(&asked, &from, index);
                    results.push((call.clone(), asked));
                    Part::ToolCall(call)
                }
                piece => self.part(&piece, &from, index),
            };
            parts.push(part);
        }
        self.messages.push(Arc::new(assistant(parts, Some(from))));
        let is_answered = !results.is_empty();
        if is_answered {
            self.results(&results);
        }
        match step.then {
            Some(shown) => self.user(shown),
            None if !is_answered => self.user(None),
            None => {}
        }
    }

    fn part(&mut self, piece: &Piece, from: &Origin, index: usize) -> Part {
        let below = Origin {
            dialect: below(from).to_owned(),
            ..from.clone()
        };
        match *piece {
            Piece::Text { empty, attached } => {
                let text = match empty {
                    true => String::new(),
                    false => self.mark(Kind::Said, index),
                };
                let opaque = attached
                    .then(|| self.of_text(&text, below, index))
                    .flatten();
                Part::Text(TextPart { text, opaque })
            }
            Piece::Reasoning { attached } => {
                let text = self.mark(Kind::Reasoning, index);
                let opaque = attached.then(|| self.of_reasoning(&text, below, index));
                let opaque = opaque.flatten();
                Part::Reasoning(ReasoningPart { text, opaque })
            }
            Piece::Refusal => Part::Refusal(TextPart {
                text: self.mark(Kind::Said, index),
                opaque: None,
            }),
            Piece::Media(picture) => Part::Media(self.media(picture, index)),
            Piece::Opaque | Piece::Call(_) => {
                let mark = self.mark(Kind::Opaque, index);
                let json = match below.dialect.as_str() {
                    "openai-chat" => json!({ mark: [] }),
                    "gemini" => json!({"executableCode": {"language": "PYTHON", "code": mark}}),
                    "anthropic" => json!({"type": "redacted_thinking", "data": mark}),
                    _ => json!({"type": "web_search_call", "id": mark, "status": "completed"}),
                };
                Part::Opaque(opaque(below, &json.to_string()))
            }
        }
    }

    /// Data attached to a text: a signature, the item that it came in, citations.
    fn of_text(&mut self, text: &str, from: Origin, index: usize) -> Option<Opaque> {
        if from.dialect == "openai-chat" {
            return None;
        }
        let mark = self.mark(Kind::Attached, index);
        let json = match from.dialect.as_str() {
            "gemini" => json!({"thoughtSignature": mark}),
            "anthropic" => json!({"citations": [{"cited_text": mark}]}),
            _ => json!({"type": "message", "id": mark, "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        };
        Some(opaque(from, &json.to_string()))
    }

    fn of_reasoning(&mut self, text: &str, from: Origin, index: usize) -> Option<Opaque> {
        if from.dialect == "openai-chat" {
            return None;
        }
        let mark = self.mark(Kind::Attached, index);
        let json = match from.dialect.as_str() {
            "gemini" => json!({"thoughtSignature": mark}),
            "anthropic" => json!({"signature": mark}),
            _ => json!({"type": "reasoning", "id": "rs", "encrypted_content": mark,
                "summary": [{"type": "summary_text", "text": text}]}),
        };
        Some(opaque(from, &json.to_string()))
    }

    fn media(&mut self, picture: Picture, index: usize) -> Media {
        let mark = self.mark(Kind::Media, index);
        let (kind, mime) = match picture {
            Picture::Png | Picture::ImageUrl => (MediaKind::Image, "image/png"),
            Picture::Tiff => (MediaKind::Image, "image/tiff"),
            Picture::Pdf | Picture::FileUrl => (MediaKind::File, "application/pdf"),
            Picture::Text => (MediaKind::File, "text/plain"),
        };
        let source = match picture {
            Picture::ImageUrl | Picture::FileUrl => {
                MediaSource::Url(format!("https://example.com/{mark}"))
            }
            _ => MediaSource::Base64(mark),
        };
        Media {
            kind,
            mime: mime.to_owned(),
            name: None,
            source,
        }
    }

    fn call(&mut self, asked: &Call, from: &Origin, index: usize) -> ToolCall {
        let number = self.made;
        let id = match asked.id {
            0 => CallId::new(format!("imported/call.{number}")),
            1 => CallId::new(format!("{}{number}", "long_".repeat(20))),
            _ => CallId::generated(1, 1, u32::try_from(number).unwrap()),
        };
        let name = ["f", "g", "no such.tool", ""][usize::from(asked.name)].to_owned();
        let arguments = match asked.arguments {
            0 => "{}".to_owned(),
            1 => format!("[\"{}\"", self.mark(Kind::BrokenArguments, index)),
            _ => json!({"a": self.mark(Kind::Said, index)}).to_string(),
        };
        let mut call = ToolCall {
            id,
            wire_id: asked.wire_id.then(|| format!("call_{number}")),
            name,
            arguments,
            complete: true,
            opaque: None,
        };
        if asked.attached {
            call.opaque = self.of_call(&call, from, index);
        }
        call
    }

    fn of_call(&mut self, call: &ToolCall, from: &Origin, index: usize) -> Option<Opaque> {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let is_item = from.dialect == "openai-responses";
        if !matches!(call.name.as_str(), "f" | "g") || (is_item && call.wire_id.is_none()) {
            return None;
        }
        let mark = |it: &mut Self| it.mark(Kind::Attached, index);
        let json = match from.dialect.as_str() {
            "openai-chat" => json!({"extra_content": {"signature": mark(self)}}),
            "gemini" => json!({"functionCall": {"name": call.name, "args": arguments},
                "thoughtSignature": mark(self)}),
            "anthropic" => json!({"caller": {"type": mark(self)}}),
            "openai-responses" => json!({"type": "function_call", "id": mark(self),
                "call_id": call.wire_id, "name": call.name, "arguments": call.arguments}),
            _ => {
                json!({"text": format!("<tool_code>{}{}</tool_code>", mark(self), call.arguments)})
            }
        };
        Some(opaque(from.clone(), &json.to_string()))
    }

    fn results(&mut self, calls: &[(ToolCall, Call)]) {
        let mut results = Vec::new();
        for (index, (call, asked)) in calls.iter().enumerate() {
            let content = match asked.content {
                0 => ToolContent::Text(String::new()),
                1 => ToolContent::Json(json!({"output": self.mark(Kind::Said, index)})),
                2 => ToolContent::Json(json!([self.mark(Kind::Said, index)])),
                _ => ToolContent::Text(self.mark(Kind::Said, index)),
            };
            let media = asked.media.map(|picture| self.media(picture, index));
            results.push(ToolResult {
                call_id: call.id.clone(),
                wire_id: call.wire_id.clone(),
                name: call.name.clone(),
                error: asked.failed.then_some(ToolErrorCode::Cancelled),
                content,
                blocks: media.into_iter().map(ContentBlock::Media).collect(),
                synthetic: asked.failed,
            });
        }
        self.results += results.len();
        self.messages.push(Arc::new(Message::tool_results(results)));
    }
}

/// The dialect that carried a message.
fn below(from: &Origin) -> &'static str {
    let name = DIALECTS.iter().find(|name| **name == from.dialect);
    base(name.unwrap())
}
