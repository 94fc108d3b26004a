//! Vectors of texts, from a provider's endpoint for them. The dialect writes the request; the response is
//! read by its shape.

use crate::HttpModel;
use crate::listing::whole_body;
use async_trait::async_trait;
use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use rondo_core::Model as _;
use rondo_core::ports::{Embedder, EmbeddingUse};
use rondo_types::{ErrorClass, ModelError};
use serde_json::Value;

/// The bound on the body of a response.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The bound on the length of a vector; the longest that are offered have some 4,000 numbers.
const DIMENSION_MAX: usize = 16_384;

/// A model that makes vectors, behind an HTTP endpoint.
#[derive(Debug, Clone)]
pub struct HttpEmbedder {
    model: HttpModel,
}

impl HttpEmbedder {
    /// Takes the endpoint and the name of a model. Providers of the dialect `anthropic` have no such endpoint.
    #[must_use]
    pub fn new(model: HttpModel) -> Self {
        Self { model }
    }

    fn request(&self, texts: &[String], used: EmbeddingUse) -> (String, Value) {
        let (dialect, model) = (self.model.link().dialect, self.model.info().origin.model);
        dialect.embedding_request(&model, texts, used == EmbeddingUse::Query)
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn name(&self) -> String {
        let origin = self.model.info().origin;
        format!("{}/{}", origin.provider, origin.model)
    }

    async fn embed(
        &self,
        texts: &[String],
        used: EmbeddingUse,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let link = self.model.link();
        let embedding = async {
            let (path, body) = self.request(texts, used);
            let request = Request::builder()
                .method(Method::POST)
                .uri(link.uri(&path)?);
            let request = request.header(CONTENT_TYPE, "application/json");
            let body = vec![Bytes::from(body.to_string())];
            let response = link.send(link.signed(request, body)?).await?;
            let body = whole_body(&self.model, response, BODY_BYTES_MAX, "the response").await?;
            vectors(&body, texts.len()).map_err(|problem| {
                let message = format!("{} sent no vectors: {problem}", link.base_url.name());
                ModelError::new(ErrorClass::Protocol, message)
            })
        };
        embedding.await.map_err(|error| link.scrubbed(error))
    }
}

/// Reads the vectors: `data[].embedding` in the order of `data[].index` from OpenAI-compatible servers;
/// `embeddings[].values` or `embedding.values` from Gemini.
fn vectors(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    let body: Value = serde_json::from_slice(body).map_err(|err| err.to_string())?;
    let found = match body.get("data") {
        Some(data) => in_order(data)?,
        None => {
            let several = body.get("embeddings").and_then(Value::as_array).cloned();
            let one = || body.get("embedding").map(|one| vec![one.clone()]);
            let found = several.or_else(one).ok_or("the response has none")?;
            let values = found.iter().map(|it| it.get("values"));
            values.map(vector).collect::<Result<_, _>>()?
        }
    };
    if found.len() != count {
        return Err(format!("{} vectors of {count} texts", found.len()));
    }
    let lengths = || found.iter().map(Vec::len);
    if lengths().any(|it| Some(it) != lengths().next()) {
        return Err("the vectors have different lengths".to_owned());
    }
    Ok(found)
}

fn in_order(data: &Value) -> Result<Vec<Vec<f32>>, String> {
    let data = data.as_array().ok_or("`data` is not a list")?;
    let mut found = Vec::with_capacity(data.len());
    for (at, entry) in data.iter().enumerate() {
        let index = entry.get("index").and_then(Value::as_u64);
        let index = index.map_or(at, |index| usize::try_from(index).unwrap_or(usize::MAX));
        found.push((index, vector(entry.get("embedding"))?));
    }
    found.sort_by_key(|(index, _)| *index);
    let is_complete = found
        .iter()
        .enumerate()
        .all(|(at, (index, _))| at == *index);
    match is_complete {
        true => Ok(found.into_iter().map(|(_, vector)| vector).collect()),
        false => Err("the vectors are not numbered from 0".to_owned()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "vectors are compared as 32-bit numbers"
)]
fn vector(value: Option<&Value>) -> Result<Vec<f32>, String> {
    let numbers = value.and_then(Value::as_array);
    let numbers = numbers.ok_or("a vector is not a list of numbers")?;
    if numbers.is_empty() || numbers.len() > DIMENSION_MAX {
        return Err(format!("a vector has {} numbers", numbers.len()));
    }
    let number = |it: &Value| it.as_f64().map(|it| it as f32).filter(|it| it.is_finite());
    let vector: Option<Vec<f32>> = numbers.iter().map(number).collect();
    vector.ok_or_else(|| "a vector has an element that is not a number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_each_kind_are_read_in_order() {
        let expected = Ok(vec![vec![1.0, 0.5], vec![0.0, 2.0]]);
        for body in [
            r#"{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[1,0.5]}]}"#,
            r#"{"data":[{"embedding":[1,0.5]},{"embedding":[0,2]}]}"#,
            r#"{"embeddings":[{"values":[1,0.5]},{"values":[0,2]}]}"#,
        ] {
            assert_eq!(vectors(body.as_bytes(), 2), expected, "{body}");
        }
        let one = br#"{"embedding":{"values":[3]}}"#;
        assert_eq!(vectors(one, 1), Ok(vec![vec![3.0]]));
    }

    #[test]
    fn what_is_no_vector_for_each_text_is_refused() {
        for (body, problem) in [
            ("<html>", "expected value"),
            ("{}", "has none"),
            (r#"{"data":{}}"#, "not a list"),
            (r#"{"data":[]}"#, "0 vectors of 1 texts"),
            (r#"{"data":[{"index":5,"embedding":[1]}]}"#, "numbered"),
            (r#"{"data":[{"index":0,"embedding":[]}]}"#, "0 numbers"),
            (r#"{"data":[{"embedding":[1e300]}]}"#, "not a number"),
            (r#"{"data":[{"embedding":"AAAA"}]}"#, "not a list of"),
        ] {
            let error = vectors(body.as_bytes(), 1).unwrap_err();
            assert!(error.contains(problem), "{body}: {error}");
        }
        let uneven = br#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#;
        assert!(vectors(uneven, 2).is_err());
    }

    #[test]
    fn the_bound_on_a_vector_is_exact() {
        let read = |count: usize| {
            let list = Value::from(vec![1.0; count]);
            vector(Some(&list)).is_ok()
        };
        assert!(read(DIMENSION_MAX - 1) && read(DIMENSION_MAX) && !read(DIMENSION_MAX + 1));
    }
}
