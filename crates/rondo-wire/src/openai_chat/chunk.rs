//! The shapes of a chunk, and of a whole reply, which has `message` where a chunk has `delta`.

use crate::json::{Count, Text, lenient, nonempty, present};
use rondo_types::Usage;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Fields that most chunks lack are boxed, since a chunk is moved often while it is read.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Box<WireUsage>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) x_groq: Option<Box<XGroq>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) object: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct XGroq {
    /// Why the stream was given up, in words.
    pub(super) error: Option<String>,
    pub(super) usage: Option<Box<WireUsage>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Box<WireUsage>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Box<FunctionDelta<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReasoningDetail<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) summary: Option<Text<'a>>,
}

/// Part of a tool call. Fields that this version does not know are kept, since Gemini's endpoint of
/// this protocol puts its signatures there.
#[derive(Debug, Default)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Option<u32>,
    pub(super) id: Option<Text<'a>>,
    pub(super) function: Option<FunctionDelta<'a>>,
    pub(super) extra: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// The content of a message: a string, or Mistral's list of text and thinking.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) pieces: Pieces<'a>,
}

#[derive(Debug, Default)]
pub(super) enum Pieces<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    List(Vec<Piece<'a>>),
}

#[derive(Debug, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Content<'a>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct WireUsage {
    prompt_tokens: Option<Count>,
    completion_tokens: Option<Count>,
    total_tokens: Option<Count>,
    reasoning_tokens: Option<Count>,
    prompt_cache_hit_tokens: Option<Count>,
    /// Kimi's name of what others have in the details.
    cached_tokens: Option<Count>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<Count>,
    cache_write_tokens: Option<Count>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<Count>,
}

impl Delta<'_> {
    /// Returns whether it has no content of any kind.
    pub(super) fn is_empty(&self) -> bool {
        let texts = [&self.refusal, &self.reasoning_content, &self.reasoning];
        let no_content = match self.content.as_ref().map(|content| &content.pieces) {
            None | Some(Pieces::None) => true,
            Some(Pieces::Text(text)) => text.is_empty(),
            Some(Pieces::List(pieces)) => pieces.is_empty(),
        };
        no_content
            && texts
                .into_iter()
                .all(|text| nonempty(text.as_ref()).is_none())
            && self.reasoning_details.as_ref().is_none_or(Vec::is_empty)
            && self.tool_calls.as_ref().is_none_or(Vec::is_empty)
            && self.function_call.is_none()
    }
}

impl WireUsage {
    /// Returns the counts as the provider counts.
    pub(super) fn reported(self) -> Usage {
        let count = |count: Option<Count>| count.unwrap_or_default().0;
        let prompt = self.prompt_tokens_details;
        let cached = prompt.and_then(|it| it.cached_tokens);
        let reasoning = self
            .completion_tokens_details
            .and_then(|it| it.reasoning_tokens);
        Usage {
            input: count(self.prompt_tokens),
            output: count(self.completion_tokens),
            reasoning: count(reasoning.or(self.reasoning_tokens)),
            cache_read: count(
                cached
                    .or(self.prompt_cache_hit_tokens)
                    .or(self.cached_tokens),
            ),
            cache_write: count(prompt.and_then(|it| it.cache_write_tokens)),
        }
    }

    /// Returns the counts in our way: output with reasoning. xAI counts it beside the output, which
    /// shows in the total.
    pub(super) fn ours(self) -> Usage {
        let mut usage = self.reported();
        let with_reasoning = usage.output.saturating_add(usage.reasoning);
        let total = self.total_tokens.unwrap_or_default().0;
        if usage.reasoning > 0 && usage.input.saturating_add(with_reasoning) == total {
            usage.output = with_reasoning;
        }
        usage
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for CallDelta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CallVisitor)
    }
}

struct CallVisitor;

impl<'de> Visitor<'de> for CallVisitor {
    type Value = CallDelta<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tool call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut call = CallDelta::default();
        while let Some(Text(key)) = map.next_key()? {
            match key.as_ref() {
                "index" => call.index = map.next_value::<Option<Count>>()?.and_then(Count::index),
                "id" => call.id = map.next_value()?,
                "function" => call.function = map.next_value()?,
                "type" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => call.extra.push((key, map.next_value()?)),
            }
        }
        Ok(call)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pieces = deserializer.deserialize_any(ContentVisitor)?;
        Ok(Self { pieces })
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Pieces<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Pieces::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Pieces::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(piece) = seq.next_element()? {
            list.push(piece);
        }
        Ok(Pieces::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Pieces::None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Pieces::None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Pieces::None)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Pieces::Text(Cow::Owned(number.to_string())))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Pieces::Text(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        let number = serde_json::Value::from(number);
        Ok(Pieces::Text(Cow::Owned(number.to_string())))
    }
}
