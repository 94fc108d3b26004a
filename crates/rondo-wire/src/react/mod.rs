//! Text ReAct: tool calls as tagged text over any other dialect.
//!
//! Tools are described in the system prompt, a call is a `<tool_code>` block in the answer, and its
//! result is an `<observation>` of the user. What goes over the wire is another dialect without its
//! own function calling, so this dialect rewrites requests before that one encodes them and reads
//! the text that it decodes. One name for each pair (`react+gemini`), rather than a field beside the
//! name, since origins then tell the pairs apart; `react` alone is over `openai-chat`.
//!
//! Lowering: call blocks are sent back as the model wrote them, or in the canonical form if they came from
//! another provider or model; results become observations, and their media follow in the same message; a
//! response schema is left out when tools are offered, since no call would match it.

mod arguments;
mod call;
pub(crate) mod decode;
mod encode;
mod output;
mod prompt;
mod quoting;
mod tags;
mod text;
mod written;

pub use output::output_text;

use crate::openai_chat::OpenAiChat;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Headers, Target};
use bytes::Bytes;
use rondo_types::{ModelError, ModelRequest, Origin, TimeMs};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// The dialect's name.
pub(crate) const NAME: &str = "react";

/// The `react` dialect without another one's name.
pub(crate) static OVER_CHAT: React = React {
    name: Cow::Borrowed(NAME),
    base: &OpenAiChat,
};

/// The `react` dialect over another one.
pub(crate) struct React {
    name: Cow<'static, str>,
    base: &'static dyn Dialect,
}

impl Dialect for React {
    fn name(&self) -> &str {
        &self.name
    }

    fn key_header(&self) -> Option<&'static str> {
        self.base.key_header()
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        self.base.headers()
    }

    fn models_path(&self) -> &'static str {
        self.base.models_path()
    }

    fn operation(&self) -> &'static str {
        self.base.operation()
    }

    fn embedding_request(&self, model: &str, texts: &[String], is_query: bool) -> (String, Value) {
        self.base.embedding_request(model, texts, is_query)
    }

    fn encode_onto(
        &self,
        prefix: &mut EncodedPrefix,
        request: &ModelRequest,
        target: &Target,
    ) -> Encoded<Vec<Bytes>> {
        let rewritten = encode::rewrite(request, target, self.base.name());
        let below = self.below(target);
        let mut encoded = self.base.encode_onto(prefix, &rewritten.request, &below);
        encoded.notes = rewritten.notes(encoded.notes);
        encoded
    }

    fn decoder(&self, target: &Target, bounds: Bounds) -> Box<dyn Decoder> {
        let base = self.base.decoder(&self.below(target), bounds);
        Box::new(decode::ReactDecoder::new(base, target, bounds))
    }

    fn error(&self, status: u16, headers: &Headers<'_>, body: &[u8], now: TimeMs) -> ModelError {
        self.base.error(status, headers, body, now)
    }
}

impl React {
    pub(crate) fn over(base: &'static dyn Dialect) -> Self {
        let name = format!("{NAME}+{}", base.name()).into();
        Self { name, base }
    }

    /// The target as the dialect below knows it: it has no tools, and reads none from text.
    fn below(&self, target: &Target) -> Target {
        let mut below = Target {
            origin: Origin {
                dialect: self.base.name().to_owned(),
                ..target.origin.clone()
            },
            tools: Arc::default(),
            ..target.clone()
        };
        below.quirks.lenient_tool_calls = false;
        below.quirks.parallel_tool_calls = None;
        below
    }
}
