//! A request to a route, and who sent it.

use super::Shared;
use super::error::ApiError;
use super::listener::Connection;
use crate::channel::ChatKey;
use crate::connections::{BodyRefused, read_body};
use crate::keys::{ApiKey, KeyHash};
use crate::users::Role;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of a body: what a message with its files may have, with base64 on top.
pub(super) const BODY_BYTES_MAX: usize = 16 << 20;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a key that is looked up.
const KEY_BYTES_MAX: usize = 128;
/// The bound on the name of a chat, in characters.
pub(super) const CHAT_CHARS_MAX: usize = 64;

/// The highest number that all readers of JSON take whole.
pub(super) const NUMBER_MAX: u64 = (1 << 53) - 1;

/// A request to a route.
pub(super) struct Call {
    pub(super) shared: Arc<Shared>,
    /// The values in the path, in order.
    pub(super) path: Vec<String>,
    pub(super) head: Parts,
    /// Never locked: it makes a call that is looked at from several threads possible, which a body alone is not.
    body: Mutex<Body>,
}

/// Sender of a request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Their name, which is their id on this channel.
    pub(super) user: String,
    pub(super) role: Role,
    pub(super) key: KeyHash,
}

impl Call {
    pub(super) fn new(shared: Arc<Shared>, path: Vec<String>, request: Request) -> Self {
        let (head, body) = request.into_parts();
        Self {
            shared,
            path,
            head,
            body: Mutex::new(body),
        }
    }

    /// Returns the caller, as the rows of the key have them now.
    pub(super) async fn caller(&self, least: Role) -> Result<Caller, ApiError> {
        let key = bearer(&self.head.headers)?.hash();
        let connection = self.head.extensions.get::<Connection>();
        let connection = connection.ok_or_else(|| ApiError::internal(&"no connection"))?;
        let parts = self.shared.parts()?;
        let (limiter, ip) = (&parts.limiter, connection.ip());
        if let Some(seconds) = limiter.refused(ip, &key) {
            let message = "too many keys were tried from this address";
            return Err(ApiError::too_many(message, seconds));
        }
        let found = parts.user(&key).await;
        let Some((user, role)) = found.map_err(|error| ApiError::internal(&error))? else {
            limiter.failed(ip, &key);
            return Err(ApiError::unauthorised());
        };
        limiter.succeeded(key.clone());
        if !connection.is_known(&key, role == Role::Owner) {
            let message = "too many connections are open with this key, or with those of others";
            return Err(ApiError::later(message));
        }
        if role < least {
            let message = format!("this requires the role `{least}`");
            return Err(ApiError::forbidden(message));
        }
        Ok(Caller { user, role, key })
    }

    /// Returns the chat that the path names, which is the caller's own: no other can be named.
    pub(super) fn chat(&self, caller: &Caller) -> Result<ChatKey, ApiError> {
        let name = self.path.first().map_or("", String::as_str);
        if !is_chat_name(name) {
            let message = format!(
                "a chat's name has 1 to {CHAT_CHARS_MAX} letters, digits, `.`, `_` and `-`, and begins with a letter or digit"
            );
            return Err(ApiError::bad_request(message));
        }
        Ok(chat_key(caller, name))
    }

    /// Returns a parameter of the query.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        let query = self.head.uri.query()?;
        url::form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }

    /// Returns a number of the query, or what holds without one.
    pub(super) fn number(&self, name: &str, without: u64, max: u64) -> Result<u64, ApiError> {
        let Some(value) = self.query(name) else {
            return Ok(without);
        };
        let number = value.parse().ok().filter(|it| *it <= max);
        number.ok_or_else(|| {
            ApiError::bad_request(format!("`{name}` must be a whole number of at most {max}"))
        })
    }

    /// Returns a number in the path.
    pub(super) fn path_number(&self, index: usize) -> Result<u64, ApiError> {
        let value = self.path.get(index).and_then(|it| it.parse().ok());
        value.filter(|it| *it <= NUMBER_MAX).ok_or_else(|| {
            let message = format!("the numbers in the path must be whole and at most {NUMBER_MAX}");
            ApiError::bad_request(message)
        })
    }

    /// Reads the body as JSON.
    pub(super) async fn json<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        let kind = self.head.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not_json",
                "the body must be JSON, with the header `Content-Type: application/json`",
            ));
        }
        let body = self.body.into_inner();
        let body = body.unwrap_or_else(PoisonError::into_inner);
        let connection = self.head.extensions.get::<Connection>();
        let connection = connection.ok_or_else(|| ApiError::internal(&"no connection"))?;
        let read = timeout(BODY_TIMEOUT, read(body, connection)).await;
        let body = read.unwrap_or_else(|_| {
            let message = format!("the body took longer than {} s", BODY_TIMEOUT.as_secs());
            Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "too_slow",
                message,
            ))
        })?;
        let read = serde_json::from_slice(&body).map(|Object(value)| value);
        read.map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}")))
    }
}

/// Reads a body. Its bytes are counted until the request is over.
async fn read(body: Body, connection: &Connection) -> Result<Vec<u8>, ApiError> {
    let read = read_body(body, BODY_BYTES_MAX, |bytes| connection.hold(bytes)).await;
    read.map_err(|refused| match refused {
        BodyRefused::TooLong => ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("a body may have at most {BODY_BYTES_MAX} bytes"),
        ),
        BodyRefused::Broken => ApiError::bad_request("the body did not arrive in full"),
        BodyRefused::NoRoom => {
            ApiError::later("too much is being received with this key, or with those of others")
        }
    })
}

/// Returns a chat of the caller's.
pub(super) fn chat_key(caller: &Caller, name: &str) -> ChatKey {
    ChatKey {
        channel: super::NAME.to_owned(),
        account: caller.user.clone(),
        chat_id: name.to_owned(),
        topic: None,
    }
}

/// As the description's pattern has it.
fn is_chat_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && name.len() <= CHAT_CHARS_MAX && name.chars().all(is_plain)
}

/// A value that is read from a JSON object: by itself, serde takes an array of its fields, too.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// Returns the key of a request. It is taken from its header alone: what is in an address ends up in logs.
fn bearer(headers: &HeaderMap) -> Result<ApiKey, ApiError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(ApiError::unauthorised());
    };
    let (scheme, key) = value
        .to_str()
        .ok()
        .and_then(|it| it.split_once(' '))
        .ok_or_else(ApiError::unauthorised)?;
    match scheme.eq_ignore_ascii_case("bearer") && key.len() <= KEY_BYTES_MAX {
        true => Ok(ApiKey::new(key.trim().to_owned())),
        false => Err(ApiError::unauthorised()),
    }
}
