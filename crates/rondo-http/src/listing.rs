//! Lists the names of a provider's models.

use crate::HttpModel;
use crate::compressed::INPUT_BYTES_MAX;
use crate::exchange::Success;
use crate::failure::Stage;
use hyper::{Method, Request};
use rondo_types::{ErrorClass, ModelError};
use serde_json::Value;

/// The bound on the body of a list of models.
const LISTING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Returns the names of an endpoint's models, as requests use them.
///
/// Only the first page of a paged list is read.
///
/// # Errors
/// As a request to the model, and when the response is not a list.
///
/// # Cancel safety
/// Dropping it ends the request. It sets no timer of its own.
pub async fn list_models(model: &HttpModel) -> Result<Vec<String>, ModelError> {
    let link = model.link();
    let listing = async {
        let uri = link.uri(link.dialect.models_path())?;
        let request = Request::builder().method(Method::GET).uri(uri);
        let response = link.send(link.signed(request, Vec::new())?).await?;
        let body = whole_body(model, response, LISTING_BYTES_MAX, "the list of models").await?;
        names(&body).ok_or_else(|| {
            let message = format!("{} sent no list of models", link.base_url.name());
            ModelError::new(ErrorClass::Protocol, message)
        })
    };
    listing.await.map_err(|error| link.scrubbed(error))
}

/// Reads a body to its end, within a bound.
pub(crate) async fn whole_body(
    model: &HttpModel,
    success: Success,
    bytes_max: usize,
    what: &str,
) -> Result<Vec<u8>, ModelError> {
    let link = model.link();
    let Success {
        mut response,
        mut inflater,
    } = success;
    let mut body = Vec::new();
    loop {
        let piece = match response.chunk().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(body),
            Err(error) => return Err(link.network_error(&error, Stage::Reading)),
        };
        for piece in piece.chunks(INPUT_BYTES_MAX) {
            match &mut inflater {
                None => body.extend_from_slice(piece),
                Some(inflater) => body.extend_from_slice(&inflater.push(piece)?),
            }
            if body.len() > bytes_max {
                let message = format!("{what} is larger than {bytes_max} bytes");
                return Err(ModelError::new(ErrorClass::TooLarge, message));
            }
        }
    }
}

/// Reads the names: `data[].id` from OpenAI-compatible servers; `models[].name`, without its prefix
/// `models/`, from Gemini; a bare list from a few servers.
fn names(body: &[u8]) -> Option<Vec<String>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let entries = ["data", "models"]
        .into_iter()
        .find_map(|key| body.get(key))
        .unwrap_or(&body)
        .as_array()?;
    let name = |entry: &Value| {
        let name = entry.get("id").or_else(|| entry.get("name"))?.as_str()?;
        Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
    };
    Some(entries.iter().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_each_kind_are_read() {
        let expected = Some(vec!["a".to_owned(), "b".to_owned()]);
        for body in [
            r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#,
            r#"{"models":[{"name":"models/a"},{"name":"models/b"}],"nextPageToken":"x"}"#,
            r#"[{"id":"a"},{"id":"b"},{"other":1}]"#,
        ] {
            assert_eq!(names(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn anything_else_is_no_list() {
        for body in ["", "<html>", "{}", r#"{"data":{}}"#] {
            assert_eq!(names(body.as_bytes()), None, "{body}");
        }
    }
}
