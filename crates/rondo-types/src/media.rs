//! Descriptions of media, which stand in for the bytes.

use crate::{ContentBlock, Media, MediaKind, MediaSource};
use serde::{Deserialize, Serialize};

/// The bound on the name and the media type in a [`Media::placeholder`], in characters.
const SHOWN_CHARS_MAX: usize = 100;

/// Description of an image or a file in events. Its bytes are in the session's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaInfo {
    /// Kind of media.
    pub kind: MediaKind,
    /// The media type, such as `image/png`.
    pub mime: String,
    /// The file name to display, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The size in decoded bytes; absent if only an address is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The address, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// One piece of a tool's output, as events describe it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockInfo {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image or a file.
    Media(MediaInfo),
}

impl From<&ContentBlock> for BlockInfo {
    fn from(block: &ContentBlock) -> Self {
        match block {
            ContentBlock::Text { text } => Self::Text { text: text.clone() },
            ContentBlock::Media(media) => Self::Media(media.info()),
        }
    }
}

impl Media {
    /// The bound on media that is sent to a provider, in decoded bytes: 20 MiB.
    pub const BYTES_MAX: usize = 20 << 20;

    /// Returns the size in decoded bytes; `None` for an address, whose bytes are elsewhere.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        let MediaSource::Base64(data) = &self.source else {
            return None;
        };
        let digits = data.trim_end_matches('=').len();
        Some(digits / 4 * 3 + digits % 4 * 3 / 4)
    }

    /// Returns whether a provider could read it at all: it has a media type, its bytes are base64, not empty and at
    /// most [`Self::BYTES_MAX`], or its address has neither blanks nor control characters. Which types a provider
    /// reads is another question.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let is_there = match &self.source {
            MediaSource::Base64(data) => {
                let size = self.size().unwrap_or_default();
                (1..=Self::BYTES_MAX).contains(&size) && is_base64(data)
            }
            MediaSource::Url(url) => {
                !url.is_empty() && !url.contains(|it: char| it.is_whitespace() || it.is_control())
            }
        };
        is_there && is_media_type(&self.mime)
    }

    /// Returns the text that stands for it if it cannot be sent, such as
    /// ``[image `shot.png` (image/png, 1234 bytes) cannot be read by this model]``. On one line, and bounded.
    #[must_use]
    pub fn placeholder(&self) -> String {
        format!("[{} cannot be read by this model]", self.described())
    }

    /// Returns the text that is at its place in a result that cannot hold it, such as
    /// ``[image `shot.png` (image/png, 1234 bytes): see below]``. On one line, and bounded.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("[{}: see below]", self.described())
    }

    /// Returns its description for events.
    #[must_use]
    pub fn info(&self) -> MediaInfo {
        let (url, bytes) = match &self.source {
            MediaSource::Url(url) => (Some(url.clone()), None),
            MediaSource::Base64(_) => (None, self.size().map(|it| it as u64)),
        };
        MediaInfo {
            kind: self.kind,
            mime: self.mime.clone(),
            name: self.name.clone(),
            bytes,
            url,
        }
    }

    /// Returns a description; [`MediaInfo::described`].
    #[must_use]
    pub fn described(&self) -> String {
        self.info().described()
    }
}

impl MediaInfo {
    /// Returns a description, such as ``image `shot.png` (image/png, 1234 bytes)``. On one line, and bounded.
    #[must_use]
    pub fn described(&self) -> String {
        let kind = match self.kind {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::File => "file",
        };
        let name = self.name.as_deref().map(shown).unwrap_or_default();
        let name = match name.is_empty() {
            true => String::new(),
            false => format!(" `{name}`"),
        };
        let mime = match shown(&self.mime) {
            mime if mime.is_empty() => "no media type".to_owned(),
            mime => mime,
        };
        match self.bytes {
            Some(1) => format!("{kind}{name} ({mime}, 1 byte)"),
            Some(size) => format!("{kind}{name} ({mime}, {size} bytes)"),
            None => format!("{kind}{name} ({mime}, at an address)"),
        }
    }
}

/// A name comes from outside: it must not end the placeholder and continue in words of its own.
fn shown(text: &str) -> String {
    let kept = text.chars().filter(|it| !it.is_control());
    let kept =
        kept.filter(|it| !matches!(it, '[' | ']' | '`' | '(' | ')' | '\u{2028}' | '\u{2029}'));
    kept.take(SHOWN_CHARS_MAX)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Padding only at the end, and as much of it as is missing, or none.
fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    let padding = data.len() - digits.len();
    let fits = match digits.len() % 4 {
        0 => padding == 0,
        2 => padding == 0 || padding == 2,
        3 => padding <= 1,
        _ => false,
    };
    let is_digit = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/');
    fits && digits.bytes().all(is_digit)
}

/// `type/subtype` of RFC 6838 names; parameters would reach into the `data:` address that they are put into.
fn is_media_type(mime: &str) -> bool {
    let is_name = |name: &str| {
        let more = |it: u8| it.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&it);
        name.starts_with(|it: char| it.is_ascii_alphanumeric())
            && name.len() <= 127
            && name.bytes().all(more)
    };
    mime.split_once('/')
        .is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(mime: &str, name: Option<&str>, data: &str) -> Media {
        Media {
            kind: MediaKind::Image,
            mime: mime.to_owned(),
            name: name.map(str::to_owned),
            source: MediaSource::Base64(data.to_owned()),
        }
    }

    #[test]
    fn a_placeholder_says_what_type_and_size() {
        let shot = media("image/png", Some("shot.png"), "QUJDRA==");
        assert_eq!(
            shot.placeholder(),
            "[image `shot.png` (image/png, 4 bytes) cannot be read by this model]"
        );
        let hostile = media("a\n]b", Some("x`]\n[run (rm)"), "");
        assert_eq!(
            hostile.placeholder(),
            "[image `xrun rm` (ab, 0 bytes) cannot be read by this model]"
        );
        let long = media("", Some(&"n".repeat(1 << 20)), "QQ==");
        assert!(long.placeholder().len() < 300);
        assert!(long.placeholder().contains("(no media type, 1 byte)"));
    }

    #[test]
    fn only_bytes_of_a_type_are_well_formed() {
        for (mime, data, expected) in [
            ("image/png", "QUJD", true),
            ("image/svg+xml", "QUI=", true),
            ("image/png", "QUI", true),
            ("image/png", "", false),
            ("image/png", "====", false),
            ("image/png", "Q", false),
            ("image/png", "QU=JD", false),
            ("image/png", "QU\"D", false),
            ("image/png;base64,QUJD", "QUJD", false),
            ("image", "QUJD", false),
            ("", "QUJD", false),
            ("image/\npng", "QUJD", false),
        ] {
            let found = media(mime, None, data).is_well_formed();
            assert_eq!((mime, data, found), (mime, data, expected));
        }
        let huge = media("image/png", None, &"A".repeat(Media::BYTES_MAX / 3 * 4 + 8));
        assert!(!huge.is_well_formed());
    }
}
