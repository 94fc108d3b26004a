//! Gemini `generateContent` and `streamGenerateContent` (v1beta).
//!
//! Parts go back as they came. A text or reasoning part keeps every field beside its text, known or not
//! (`chunk::read_part`), and a call keeps its whole part; `encode` sends them to the same provider
//! (`Encoder::own_fields`). A new field needs no code, unless it is bound to its model as the signature
//! is, or a part may hold nothing else. Tools are sent as `parametersJsonSchema` rather than
//! `parameters`, whose OpenAPI subset would need a lossy translation.
//!
//! Lowering: reasoning and signatures of another provider or model are left out; a refusal becomes text;
//! call ids of another provider are not sent, since results are matched by order; a result that is not an
//! object is wrapped as `output` or `error`; media of results follow in a user content; a response schema
//! is left out when tools are offered.

mod chunk;
pub(crate) mod decode;
mod encode;
mod errors;
mod partial;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Headers, Target};
use bytes::Bytes;
use rondo_types::{ModelError, ModelRequest, TimeMs};
use serde_json::{Value, json};

/// The field of a part in which its model signs it. It is sent back to that model only.
const SIGNATURE: &str = "thoughtSignature";

/// The `gemini` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn name(&self) -> &str {
        "gemini"
    }

    fn key_header(&self) -> Option<&'static str> {
        Some("x-goog-api-key")
    }

    fn models_path(&self) -> &'static str {
        "/v1beta/models?pageSize=1000"
    }

    fn operation(&self) -> &'static str {
        "generate_content"
    }

    /// <https://ai.google.dev/api/embeddings>.
    fn embedding_request(&self, model: &str, texts: &[String], is_query: bool) -> (String, Value) {
        let task = match is_query {
            true => "RETRIEVAL_QUERY",
            false => "RETRIEVAL_DOCUMENT",
        };
        let one = |text: &String| {
            json!({
                "model": format!("models/{model}"),
                "content": {"parts": [{"text": text}]},
                "taskType": task,
            })
        };
        match texts {
            [text] => (format!("/v1beta/models/{model}:embedContent"), one(text)),
            _ => {
                let requests: Vec<Value> = texts.iter().map(one).collect();
                let path = format!("/v1beta/models/{model}:batchEmbedContents");
                (path, json!({ "requests": requests }))
            }
        }
    }

    fn encode_onto(
        &self,
        prefix: &mut EncodedPrefix,
        request: &ModelRequest,
        target: &Target,
    ) -> Encoded<Vec<Bytes>> {
        encode::encode(prefix, request, target)
    }

    fn decoder(&self, target: &Target, bounds: Bounds) -> Box<dyn Decoder> {
        let payloads = decode::GeminiPayloadDecoder::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }

    fn error(&self, status: u16, headers: &Headers<'_>, body: &[u8], now: TimeMs) -> ModelError {
        errors::of_response(status, headers, body, now)
    }
}
