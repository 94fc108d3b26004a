//! Results of servers as outcomes of calls: text, structured content, images, sounds and resources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock as Received, ResourceContents};
use rondo_types::text::both_ends;
use rondo_types::{
    ContentBlock, Media, MediaKind, MediaSource, ToolErrorCode, ToolOutcome, ToolOutput,
};
use serde_json::Value;

/// The bound on the text of one result, in bytes; its middle is left out.
pub(crate) const TEXT_BYTES_MAX: usize = 256 << 10;
/// The bound on the blocks of one result that are looked at.
const BLOCKS_MAX: usize = 1024;

/// Turns a server's result into an outcome. It is text from outside, and says so.
pub(crate) fn outcome(result: CallToolResult) -> ToolOutcome {
    let is_error = result.is_error == Some(true);
    let mut blocks = blocks(result.content);
    let structured = result.structured_content.filter(|it| !it.is_null());
    if let Some(structured) = structured {
        add_structured(&mut blocks, structured, is_error);
    }
    let mut truncated = bound(&mut blocks);
    if is_error {
        let texts = blocks.iter().filter_map(|block| match block {
            Shown::Text(text) => Some(text.as_str()),
            Shown::Json(_) | Shown::Media(_) => None,
        });
        let message = texts.collect::<Vec<_>>().join("\n");
        let message = match message.is_empty() {
            true => "the server says that the call failed, and not why".to_owned(),
            false => message,
        };
        return ToolOutcome::error(ToolErrorCode::Failed, message);
    }
    let mut blocks = blocks.into_iter().peekable();
    let mut value = Value::String(String::new());
    if let Some(Shown::Json(json)) = blocks.next_if(|it| matches!(it, Shown::Json(_))) {
        if json.to_string().len() > TEXT_BYTES_MAX {
            value = Value::String(shortened(&json.to_string()));
            truncated = true;
        } else {
            value = json;
        }
    } else {
        let mut text = String::new();
        while let Some(Shown::Text(more)) = blocks.next_if(|it| matches!(it, Shown::Text(_))) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&more);
        }
        value = match text.is_empty() {
            true => value,
            false => Value::String(text),
        };
    }
    let rest = blocks.map(|block| match block {
        Shown::Text(text) => ContentBlock::text(text),
        Shown::Json(json) => ContentBlock::text(shortened(&json.to_string())),
        Shown::Media(media) => ContentBlock::Media(media),
    });
    ToolOutcome::Ok(
        ToolOutput {
            value,
            blocks: rest.collect(),
            truncated,
            from_outside: true,
            ..ToolOutput::default()
        }
        .within_bounds(),
    )
}

/// A block of a result.
pub(crate) enum Shown {
    Text(String),
    Json(Value),
    Media(Media),
}

/// Reads blocks of a result, a prompt or a resource.
pub(crate) fn blocks(received: Vec<Received>) -> Vec<Shown> {
    let beyond = received.len().saturating_sub(BLOCKS_MAX);
    let mut blocks: Vec<Shown> = received.into_iter().take(BLOCKS_MAX).map(block).collect();
    if beyond > 0 {
        blocks.push(Shown::Text(format!("[{beyond} more blocks left out]")));
    }
    blocks
}

fn block(received: Received) -> Shown {
    match received {
        Received::Text(text) => Shown::Text(text.text),
        Received::Image(image) => media(MediaKind::Image, image.mime_type, None, &image.data),
        Received::Audio(audio) => media(MediaKind::Audio, audio.mime_type, None, &audio.data),
        Received::Resource(embedded) => resource(embedded.resource),
        Received::ResourceLink(link) => {
            let described = link.description.unwrap_or_default();
            Shown::Text(format!(
                "[resource {}: {} {described}]",
                link.uri, link.name
            ))
        }
        _ => Shown::Text("[a block of a kind that is not known]".to_owned()),
    }
}

/// Reads the contents of a resource.
pub(crate) fn resource(contents: ResourceContents) -> Shown {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            Shown::Text(format!("[resource {uri}]\n{text}"))
        }
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let mime = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            let kind = match mime.split('/').next() {
                Some("image") => MediaKind::Image,
                Some("audio") => MediaKind::Audio,
                _ => MediaKind::File,
            };
            let name = uri.rsplit('/').next().unwrap_or(&uri).to_owned();
            media(kind, mime, Some(name), &blob)
        }
        _ => Shown::Text("[a resource of a kind that is not known]".to_owned()),
    }
}

fn media(kind: MediaKind, mime: String, name: Option<String>, data: &str) -> Shown {
    // Others leave out the padding or break lines.
    let data: String = data
        .chars()
        .filter(|it| !it.is_ascii_whitespace())
        .collect();
    let media = Media {
        kind,
        mime,
        name,
        source: MediaSource::Base64(data),
    };
    let decodes = match &media.source {
        MediaSource::Base64(data) => STANDARD.decode(data).is_ok(),
        MediaSource::Url(_) => false,
    };
    match media.is_well_formed() && decodes {
        true => Shown::Media(media),
        false => Shown::Text(format!(
            "[{} left out: it cannot be read]",
            media.described()
        )),
    }
}

/// Adds structured content, which most servers also send as the text of their only block.
fn add_structured(blocks: &mut Vec<Shown>, structured: Value, is_error: bool) {
    let repeats = |block: &Shown| match block {
        Shown::Text(text) => serde_json::from_str::<Value>(text).is_ok_and(|it| it == structured),
        Shown::Json(_) | Shown::Media(_) => false,
    };
    if is_error {
        if !blocks.iter().any(repeats) {
            blocks.push(Shown::Text(structured.to_string()));
        }
        return;
    }
    match blocks.iter().position(repeats) {
        Some(at) => {
            if let Some(block) = blocks.get_mut(at) {
                *block = Shown::Json(structured);
            }
        }
        None if blocks.is_empty() => blocks.push(Shown::Json(structured)),
        None => blocks.push(Shown::Text(structured.to_string())),
    }
}

/// Shortens the texts so that they are within their bound together. Returns whether anything was left out.
fn bound(blocks: &mut Vec<Shown>) -> bool {
    let mut left = TEXT_BYTES_MAX;
    let mut was_cut = false;
    blocks.retain_mut(|block| {
        let Shown::Text(text) = block else {
            return true;
        };
        let is_kept = left > 0;
        if text.len() > left {
            *text = both_ends(text, left);
            was_cut = true;
        }
        left = left.saturating_sub(text.len());
        is_kept || text.is_empty()
    });
    was_cut
}

pub(crate) fn shortened(text: &str) -> String {
    both_ends(text, TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(result: Value) -> ToolOutcome {
        outcome(serde_json::from_value(result).unwrap())
    }

    fn output(result: Value) -> ToolOutput {
        match told(result) {
            ToolOutcome::Ok(output) => output,
            ToolOutcome::Error(error) => panic!("{error:?}"),
        }
    }

    const PNG: &str = "iVBORw0KGgo=";

    #[test]
    fn texts_are_the_value_and_what_follows_an_image_stays_behind_it() {
        let result = output(json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "text", "text": "c"}
        ]}));
        assert_eq!(result.value, json!("a\nb"));
        assert!(result.from_outside);
        assert!(!result.truncated);
        let [ContentBlock::Media(image), ContentBlock::Text { text }] = &result.blocks[..] else {
            panic!("{:?}", result.blocks)
        };
        assert_eq!(
            (image.kind, image.mime.as_str()),
            (MediaKind::Image, "image/png")
        );
        assert_eq!(text, "c");
    }

    #[test]
    fn structured_content_is_told_once() {
        let both = output(
            json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}}),
        );
        assert_eq!((both.value, both.blocks.len()), (json!({"a": 1}), 0));
        let alone = output(json!({"content": [], "structuredContent": [1, 2]}));
        assert_eq!(alone.value, json!([1, 2]));
        let other = output(
            json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"a": 1}}),
        );
        assert_eq!(other.value, json!("one\n{\"a\":1}"));
        let none = output(json!({"content": []}));
        assert_eq!(none.value, json!(""));
    }

    #[test]
    fn an_error_of_the_server_is_one_for_the_model() {
        let error =
            told(json!({"content": [{"type": "text", "text": "no such issue"}], "isError": true}));
        assert_eq!(
            error,
            ToolOutcome::error(ToolErrorCode::Failed, "no such issue")
        );
        let silent = told(json!({"content": [], "isError": true}));
        assert_eq!(silent.code(), Some(ToolErrorCode::Failed));
    }

    #[test]
    fn resources_sounds_and_what_is_broken_are_named() {
        let result = output(json!({"content": [
            {"type": "resource", "resource": {"uri": "x://t", "text": "words"}},
            {"type": "resource_link", "uri": "x://l", "name": "l"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "x://a/b.bin", "blob": "AAAA"}},
            {"type": "image", "data": "!", "mimeType": "image/png"},
            {"type": "image", "data": PNG, "mimeType": "image/png\r\nx"}
        ]}));
        assert_eq!(
            result.value,
            json!("[resource x://t]\nwords\n[resource x://l: l ]")
        );
        let kinds: Vec<String> = result
            .blocks
            .iter()
            .map(|block| match block {
                ContentBlock::Media(media) => format!("{:?} {:?}", media.kind, media.name),
                ContentBlock::Text { text } => text.clone(),
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "Audio None",
                "File Some(\"b.bin\")",
                "[image (image/png, 0 bytes) left out: it cannot be read]",
                "[image (image/pngx, 8 bytes) left out: it cannot be read]"
            ]
        );
    }

    #[test]
    fn text_is_bounded() {
        let of = |bytes: usize| {
            output(json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]}))
        };
        for bytes in [TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX] {
            assert!(!of(bytes).truncated);
        }
        let long = of(TEXT_BYTES_MAX + 1);
        assert!(long.truncated);
        assert!(long.value.as_str().unwrap().contains("bytes left out"));
        let many: Vec<Value> = (0..BLOCKS_MAX + 1)
            .map(|_| json!({"type": "text", "text": "x"}))
            .collect();
        let many = output(json!({"content": many}));
        assert!(
            many.value
                .as_str()
                .unwrap()
                .ends_with("[1 more blocks left out]")
        );
        let json = output(json!({"content": [], "structuredContent": "x".repeat(TEXT_BYTES_MAX)}));
        assert!(json.truncated);
    }
}
