//! Detection of a body's type: HTML, a PDF, other text, or something else.

/// Bytes that are inspected if a server does not send a type.
const LOOKED_AT: usize = 4 << 10;
/// Types that are text, besides those that begin with `text/`.
const TEXTS: [&str; 10] = [
    "application/json",
    "application/ld+json",
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/toml",
    "application/yaml",
    "application/x-yaml",
    "application/x-sh",
];

/// Type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Html,
    Pdf,
    Text,
    Other,
}

/// Returns the kind of a body, by its type, or by its bytes if there is no type.
pub(crate) fn content(content_type: Option<&str>, body: &[u8]) -> Content {
    let essence = content_type.and_then(|it| it.split(';').next());
    let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Content::Html,
        "application/pdf" | "application/x-pdf" => Content::Pdf,
        "" | "application/octet-stream" | "binary/octet-stream" => of_bytes(body),
        "text/plain" if body.starts_with(b"%PDF-") => Content::Pdf,
        other => {
            let is_text = other.starts_with("text/")
                || other.ends_with("+json")
                || other.ends_with("+xml")
                || other.ends_with("+yaml")
                || TEXTS.contains(&other);
            match is_text && !body.contains(&0) {
                true => Content::Text,
                // UTF-16 has zeros, and begins with a mark.
                false if is_text && has_mark(body) => Content::Text,
                false => Content::Other,
            }
        }
    }
}

fn of_bytes(body: &[u8]) -> Content {
    let start = body.get(..LOOKED_AT).unwrap_or(body);
    if start.starts_with(b"%PDF-") {
        return Content::Pdf;
    }
    if start.contains(&0) && !has_mark(start) {
        return Content::Other;
    }
    let text = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    if text.starts_with("<!doctype html") || text.starts_with("<html") {
        return Content::Html;
    }
    let replaced = text.matches(char::REPLACEMENT_CHARACTER).count();
    // One is the character that the bound cuts.
    match replaced <= 1 + text.len() / 50 {
        true => Content::Text,
        false => Content::Other,
    }
}

fn has_mark(body: &[u8]) -> bool {
    body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_known() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0";
        for (content_type, body, expected) in [
            (Some("text/html; charset=utf-8"), &b"x"[..], Content::Html),
            (Some("Application/XHTML+XML"), b"x", Content::Html),
            (Some("application/pdf"), b"x", Content::Pdf),
            (Some("application/octet-stream"), b"%PDF-1.7", Content::Pdf),
            (Some("text/plain"), b"%PDF-1.7", Content::Pdf),
            (Some("application/vnd.api+json"), b"{}", Content::Text),
            (Some("text/x-rust"), b"fn", Content::Text),
            (Some("text/plain"), png, Content::Other),
            (Some("text/plain"), b"\xff\xfea\0", Content::Text),
            (Some("image/png"), png, Content::Other),
            (Some("application/zip"), b"PK", Content::Other),
            (None, b" <!DOCTYPE html><p>", Content::Html),
            (None, b"plain", Content::Text),
            (None, png, Content::Other),
            (None, b"\xff\xfa\xfb\xfc\xfd\xee", Content::Other),
        ] {
            assert_eq!(content(content_type, body), expected, "{content_type:?}");
        }
    }
}
