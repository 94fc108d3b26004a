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
use std::sync::Arc;

/// The dialect's name.
pub(crate) const NAME: &str = "react";

/// Every pair of this dialect with one below it, by the names of the pair and of that one.
static PAIRS: [React; 5] = [
    React::over(NAME, crate::openai_chat::NAME),
    React::over("react+openai-chat", crate::openai_chat::NAME),
    React::over("react+gemini", crate::gemini::NAME),
    React::over("react+openai-responses", "openai-responses"),
    React::over("react+anthropic", "anthropic"),
];

/// The `react` dialect over another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct React {
    name: &'static str,
    base: &'static str,
}

/// Returns the pair of that name.
pub(crate) fn find(name: &str) -> Option<&'static dyn Dialect> {
    let pair = PAIRS.iter().find(|pair| pair.name == name)?;
    Some(pair)
}

/// Returns the name of the `react` dialect over the dialect of that name, if they can be paired.
///
/// The tags are text, so every dialect of a provider can carry them.
#[must_use]
pub fn react_over(base: &str) -> Option<&'static str> {
    let mut known = PAIRS.iter().filter(|pair| pair.name != NAME);
    let pair = known.find(|pair| pair.base == base)?;
    crate::dialect(base).map(|_| pair.name)
}

impl Dialect for React {
    fn name(&self) -> &'static str {
        self.name
    }

    fn encode_onto(
        &self,
        prefix: &mut EncodedPrefix,
        request: &ModelRequest,
        target: &Target,
    ) -> Encoded<Vec<Bytes>> {
        let rewritten = encode::rewrite(request, target, self.base().name());
        let below = self.below(target);
        let base = self.base();
        let mut encoded = base.encode_onto(prefix, &rewritten.request, &below);
        encoded.notes = rewritten.notes(encoded.notes);
        encoded
    }

    fn decoder(&self, target: &Target, bounds: Bounds) -> Box<dyn Decoder> {
        let base = self.base().decoder(&self.below(target), bounds);
        Box::new(decode::ReactDecoder::new(base, target, bounds))
    }

    fn error(&self, status: u16, headers: &Headers<'_>, body: &[u8], now: TimeMs) -> ModelError {
        self.base().error(status, headers, body, now)
    }
}

impl React {
    const fn over(name: &'static str, base: &'static str) -> Self {
        Self { name, base }
    }

    fn base(&self) -> &'static dyn Dialect {
        crate::dialect(self.base).unwrap_or(&OpenAiChat)
    }

    /// The target as the dialect below knows it: it has no tools, and reads none from text.
    fn below(&self, target: &Target) -> Target {
        let mut below = Target {
            origin: Origin {
                dialect: self.base().name().to_owned(),
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
