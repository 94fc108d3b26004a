//! A request that the scripted server received.

use bytes::Bytes;
use serde_json::Value;

/// A request as the server read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The number of its connection, from 0.
    pub connection: usize,
    /// `POST`.
    pub method: String,
    /// The path with its query, as sent.
    pub path: String,
    /// Names in lower case, in the order sent.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Bytes,
}

impl Recorded {
    /// Returns the first header of this lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// When it is not JSON, which fails the test.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the request's body is JSON")
    }
}

/// Reads a request's head: everything before the empty line.
pub(crate) fn parse_head(connection: usize, head: &str) -> Option<Recorded> {
    let mut lines = head.split("\r\n");
    let mut start = lines.next()?.split(' ');
    let (method, path) = (start.next()?, start.next()?);
    let headers = lines
        .filter(|line| !line.is_empty())
        .map(parse_header)
        .collect::<Option<Vec<_>>>()?;
    Some(Recorded {
        connection,
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: Bytes::new(),
    })
}

fn parse_header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_owned()))
}
