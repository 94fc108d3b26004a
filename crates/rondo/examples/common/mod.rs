//! Model of the examples.

use rondo::{Auth, Endpoint, HttpModel, ModelCard, Secret};

/// Whatever goes wrong in an example.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "give a dialect, a base URL and a model, such as\n  \
    openai-chat http://127.0.0.1:8080/v1 any\n  \
    gemini https://generativelanguage.googleapis.com gemini-2.5-flash\n\
    and the key, where there is one, in RONDO_API_KEY";

/// Takes the next three arguments as dialect, base URL and model, and the key from the environment.
pub(crate) fn model_from_env(
    args: &mut impl Iterator<Item = String>,
) -> Result<HttpModel, Failure> {
    let (Some(dialect), Some(base_url), Some(name)) = (args.next(), args.next(), args.next())
    else {
        return Err(USAGE.into());
    };
    let mut endpoint = Endpoint::new("example", dialect, base_url);
    if let Ok(key) = std::env::var("RONDO_API_KEY") {
        endpoint.auth = Auth::Key(Secret::new(key));
    }
    Ok(HttpModel::new(&endpoint, ModelCard::new(name))?)
}
