//! Forms with files (`multipart/form-data`, RFC 7578).

use bytes::{BufMut as _, Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

/// A form that is being written.
#[derive(Debug, Default)]
pub struct Form {
    parts: Vec<(String, Bytes)>,
}

impl Form {
    /// Adds a parameter.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<String>) -> Self {
        let head = format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        self.parts.push((head, value.into().into()));
        self
    }

    /// Adds a parameter if there is one.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds a file. Its name comes from elsewhere, so what would end the header is replaced.
    #[must_use]
    pub fn file(mut self, name: &str, file_name: &str, bytes: Bytes) -> Self {
        let file_name: String = file_name
            .chars()
            .map(|it| {
                if it.is_control() || "\"\\/".contains(it) {
                    '_'
                } else {
                    it
                }
            })
            .collect();
        let head = format!(
            "Content-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        self.parts.push((head, bytes));
        self
    }

    /// Returns the header that says how it is delimited.
    #[must_use]
    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary())
    }

    /// Returns the whole form.
    #[must_use]
    pub fn finish(self) -> Bytes {
        let boundary = self.boundary();
        let bytes = self.parts.iter().map(|(head, it)| head.len() + it.len());
        let mut out = BytesMut::with_capacity(bytes.sum::<usize>() + 128 * (self.parts.len() + 1));
        for (head, content) in &self.parts {
            out.put_slice(format!("--{boundary}\r\n{head}").as_bytes());
            out.put_slice(content);
            out.put_slice(b"\r\n");
        }
        out.put_slice(format!("--{boundary}--\r\n").as_bytes());
        out.freeze()
    }

    /// A hash of the content: content that contains its own hash cannot be made.
    fn boundary(&self) -> String {
        let mut hash = Sha256::new();
        for (head, content) in &self.parts {
            hash.update(head);
            hash.update(content);
        }
        let digest = hash.finalize();
        let digits: String = digest
            .iter()
            .take(16)
            .map(|it| format!("{it:02x}"))
            .collect();
        format!("rondo-{digits}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_header() {
        let form = Form::default()
            .field("chat_id", "7")
            .maybe("caption", None::<&str>)
            .file(
                "document",
                "a\"\r\nX: y\\../b",
                Bytes::from_static(b"--rondo"),
            );
        let boundary = form.boundary();
        let written = String::from_utf8(form.finish().to_vec()).unwrap();
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"document\"; filename=\"a___X: y_.._b\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n--rondo\r\n--{boundary}--\r\n"
        );
        assert_eq!(written, expected);
    }
}
