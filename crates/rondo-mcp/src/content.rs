//! Results of servers as outcomes of calls: text, structured content, images, sounds and resources.

use crate::private_file;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock as Received, ResourceContents};
use rondo_types::text::both_ends;
use rondo_types::{
    ContentBlock, Media, MediaKind, MediaSource, ToolErrorCode, ToolOutcome, ToolOutput,
};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The bound on the text of one result, in bytes; its middle is left out.
pub(crate) const TEXT_BYTES_MAX: usize = 256 << 10;
/// Bytes from which on a text is looked through for the data of an image.
const MIRRORED_BYTES_MIN: usize = 256;
/// The bound on the blocks of one result that are looked at.
const BLOCKS_MAX: usize = 1024;

/// Turns a server's result into an outcome. It is text from outside, and says so.
pub(crate) fn outcome(result: CallToolResult) -> ReadResult {
    let is_error = result.is_error == Some(true);
    told(blocks(result.content), result.structured_content, is_error)
}

/// The same of a result that rmcp cannot read, such as for one block of a kind that is not known: it costs that block
/// alone.
pub(crate) fn outcome_of(mut result: Value) -> ReadResult {
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    let structured = result.get_mut("structuredContent").map(Value::take);
    let entries = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    };
    let beyond = entries.len().saturating_sub(BLOCKS_MAX);
    let mut blocks: Vec<ResultBlock> = entries.iter().take(BLOCKS_MAX).map(any_block).collect();
    if beyond > 0 {
        blocks.push(ResultBlock::Text(format!(
            "[{beyond} more blocks left out]"
        )));
    }
    told(blocks, structured, is_error)
}

/// Reads a block of any kind.
fn any_block(entry: &Value) -> ResultBlock {
    match serde_json::from_value::<Received>(entry.clone()) {
        Ok(known) => block(known),
        Err(_) => {
            let kind = entry.get("type").and_then(Value::as_str).unwrap_or("none");
            let kind = rondo_core::shown::line(&kind.chars().take(100).collect::<String>());
            let text = entry.get("text").and_then(Value::as_str);
            let text = text.map_or_else(|| entry.to_string(), str::to_owned);
            ResultBlock::Text(format!("[a block of the unknown type `{kind}`]\n{text}"))
        }
    }
}

fn told(mut blocks: Vec<ResultBlock>, structured: Option<Value>, is_error: bool) -> ReadResult {
    let mut structured = structured.filter(|it| !it.is_null());
    leave_media_out(&mut blocks, structured.as_mut());
    if let Some(structured) = structured {
        add_structured(&mut blocks, structured, is_error);
    }
    let whole = whole_text(&blocks);
    let mut truncated = bound(&mut blocks);
    if is_error {
        let texts = blocks.iter().filter_map(|block| match block {
            ResultBlock::Text(text) => Some(text.as_str()),
            ResultBlock::Json(_) | ResultBlock::Media(_) => None,
        });
        let message = texts.collect::<Vec<_>>().join("\n");
        let message = match message.is_empty() {
            true => "the server says that the call failed, and not why".to_owned(),
            false => message,
        };
        return ToolOutcome::error(ToolErrorCode::Failed, message).into();
    }
    let mut blocks = blocks.into_iter().peekable();
    let mut value = Value::String(String::new());
    if let Some(ResultBlock::Json(json)) = blocks.next_if(|it| matches!(it, ResultBlock::Json(_))) {
        if json.to_string().len() > TEXT_BYTES_MAX {
            value = Value::String(shortened(&json.to_string()));
            truncated = true;
        } else {
            value = json;
        }
    } else {
        let mut text = String::new();
        while let Some(ResultBlock::Text(more)) =
            blocks.next_if(|it| matches!(it, ResultBlock::Text(_)))
        {
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
        ResultBlock::Text(text) => ContentBlock::text(text),
        ResultBlock::Json(json) => ContentBlock::text(shortened(&json.to_string())),
        ResultBlock::Media(media) => ContentBlock::Media(media),
    });
    let output = ToolOutput {
        value,
        blocks: rest.collect(),
        truncated,
        from_outside: true,
        ..ToolOutput::default()
    };
    ReadResult {
        outcome: ToolOutcome::Ok(output.within_bounds()),
        whole: whole.filter(|_| truncated),
    }
}

/// A result as an outcome.
pub(crate) struct ReadResult {
    outcome: ToolOutcome,
    /// All of its texts, if the outcome has only their beginning and end.
    whole: Option<String>,
}

impl From<ToolOutcome> for ReadResult {
    fn from(outcome: ToolOutcome) -> Self {
        let whole = None;
        Self { outcome, whole }
    }
}

impl ReadResult {
    /// Returns the outcome, which names the file that holds all of a result that was shortened.
    pub(crate) async fn kept_in(self, file: Option<PathBuf>) -> ToolOutcome {
        let Self { outcome, whole } = self;
        let (Some(file), Some(whole), ToolOutcome::Ok(mut output)) = (file, whole, outcome.clone())
        else {
            return outcome;
        };
        let place = file.display().to_string();
        let write = move || private_file::write(&file, whole.as_bytes());
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {
                if let Value::String(text) = &mut output.value {
                    let _ = write!(text, "\n[the whole result is in {place}]");
                }
                output.spill = Some(place);
                ToolOutcome::Ok(output)
            }
            failed => {
                tracing::warn!(?failed, "the whole result of a call cannot be kept");
                outcome
            }
        }
    }
}

/// Returns all texts of a result, if they are longer than their bound together.
fn whole_text(blocks: &[ResultBlock]) -> Option<String> {
    let texts = blocks.iter().filter_map(|block| match block {
        ResultBlock::Text(text) => Some(text.clone()),
        ResultBlock::Json(json) => Some(json.to_string()),
        ResultBlock::Media(_) => None,
    });
    let texts: Vec<String> = texts.collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    (bytes > TEXT_BYTES_MAX).then(|| texts.join("\n"))
}

/// A block of a result.
pub(crate) enum ResultBlock {
    Text(String),
    Json(Value),
    Media(Media),
}

/// Reads blocks of a result, a prompt or a resource.
pub(crate) fn blocks(received: Vec<Received>) -> Vec<ResultBlock> {
    let beyond = received.len().saturating_sub(BLOCKS_MAX);
    let mut blocks: Vec<ResultBlock> = received.into_iter().take(BLOCKS_MAX).map(block).collect();
    if beyond > 0 {
        blocks.push(ResultBlock::Text(format!(
            "[{beyond} more blocks left out]"
        )));
    }
    blocks
}

fn block(received: Received) -> ResultBlock {
    match received {
        Received::Text(text) => ResultBlock::Text(text.text),
        Received::Image(image) => media(MediaKind::Image, image.mime_type, None, &image.data),
        Received::Audio(audio) => media(MediaKind::Audio, audio.mime_type, None, &audio.data),
        Received::Resource(embedded) => resource(embedded.resource),
        Received::ResourceLink(link) => {
            let described = link.description.unwrap_or_default();
            ResultBlock::Text(format!(
                "[resource {}: {} {described}]",
                link.uri, link.name
            ))
        }
        _ => ResultBlock::Text("[a block of a kind that is not known]".to_owned()),
    }
}

/// Reads the contents of a resource.
pub(crate) fn resource(contents: ResourceContents) -> ResultBlock {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            ResultBlock::Text(format!("[resource {uri}]\n{text}"))
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
        _ => ResultBlock::Text("[a resource of a kind that is not known]".to_owned()),
    }
}

fn media(kind: MediaKind, mime: String, name: Option<String>, data: &str) -> ResultBlock {
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
        true => ResultBlock::Media(media),
        false => ResultBlock::Text(format!(
            "[{} left out: it cannot be read]",
            media.described()
        )),
    }
}

/// Puts a few words if a text or structured content repeats the bytes of an image or a file: they are there once
/// already, and would fill the context.
fn leave_media_out(blocks: &mut [ResultBlock], structured: Option<&mut Value>) {
    let media = blocks.iter().filter_map(|block| match block {
        ResultBlock::Media(media) => match &media.source {
            MediaSource::Base64(data) if data.len() >= MIRRORED_BYTES_MIN => {
                Some((data.clone(), format!("[{}: see below]", media.described())))
            }
            _ => None,
        },
        ResultBlock::Text(_) | ResultBlock::Json(_) => None,
    });
    let media: Vec<(String, String)> = media.collect();
    if media.is_empty() {
        return;
    }
    let shorten = |text: &mut String| {
        for (data, words) in &media {
            if text.len() >= data.len() && text.contains(data.as_str()) {
                *text = text.replace(data.as_str(), words);
            }
        }
    };
    for block in blocks {
        if let ResultBlock::Text(text) = block {
            shorten(text);
        }
    }
    if let Some(structured) = structured {
        each_text(structured, &shorten);
    }
}

/// Changes each string of a value. Values are as deep as JSON is read.
fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(list) => list.iter_mut().for_each(|it| each_text(it, change)),
        Value::Object(map) => map.values_mut().for_each(|it| each_text(it, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns whether texts say the same as structured content: a widespread library puts the value of a tool below the
/// key `result`, and each element of a list into a block of its own.
fn is_said_by(blocks: &[ResultBlock], structured: &Value) -> bool {
    let texts = blocks.iter().filter_map(|block| match block {
        ResultBlock::Text(text) => Some(text.as_str()),
        ResultBlock::Json(_) | ResultBlock::Media(_) => None,
    });
    let texts: Vec<&str> = texts.collect();
    let is = |text: &str, value: &Value| match value {
        Value::String(it) => it == text,
        value => serde_json::from_str::<Value>(text).is_ok_and(|it| it == *value),
    };
    let wrapped = structured
        .as_object()
        .filter(|it| it.len() == 1)
        .and_then(|it| it.get("result"));
    let Some(value) = wrapped.filter(|_| !texts.is_empty()) else {
        return false;
    };
    let elements = value.as_array().filter(|it| it.len() == texts.len());
    let by_element =
        elements.is_some_and(|it| it.iter().zip(&texts).all(|(it, text)| is(text, it)));
    by_element || is(&texts.join("\n"), value)
}

/// Adds structured content, which most servers also send as the text of their only block.
fn add_structured(blocks: &mut Vec<ResultBlock>, structured: Value, is_error: bool) {
    if is_said_by(blocks, &structured) {
        return;
    }
    let repeats = |block: &ResultBlock| match block {
        ResultBlock::Text(text) => {
            serde_json::from_str::<Value>(text).is_ok_and(|it| it == structured)
        }
        ResultBlock::Json(_) | ResultBlock::Media(_) => false,
    };
    if is_error {
        if !blocks.iter().any(repeats) {
            blocks.push(ResultBlock::Text(structured.to_string()));
        }
        return;
    }
    match blocks.iter().position(repeats) {
        Some(at) => {
            if let Some(block) = blocks.get_mut(at) {
                *block = ResultBlock::Json(structured);
            }
        }
        None if blocks.is_empty() => blocks.push(ResultBlock::Json(structured)),
        None => blocks.push(ResultBlock::Text(structured.to_string())),
    }
}

/// Shortens the texts so that they are within their bound together. Returns whether anything was left out.
fn bound(blocks: &mut Vec<ResultBlock>) -> bool {
    let mut left = TEXT_BYTES_MAX;
    let mut was_cut = false;
    blocks.retain_mut(|block| {
        let ResultBlock::Text(text) = block else {
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

    fn read(result: Value) -> ToolOutcome {
        outcome(serde_json::from_value(result).unwrap()).outcome
    }

    fn output(result: Value) -> ToolOutput {
        match read(result) {
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
    fn a_value_that_is_wrapped_for_its_structure_is_told_once() {
        for (texts, structured) in [
            (vec!["plain words"], json!({"result": "plain words"})),
            (vec!["{\"a\": 1}"], json!({"result": {"a": 1}})),
            (vec!["1", "two"], json!({"result": [1, "two"]})),
        ] {
            let blocks: Vec<Value> = texts
                .iter()
                .map(|text| json!({"type": "text", "text": text}))
                .collect();
            let told = output(json!({"content": blocks, "structuredContent": structured}));
            assert_eq!(
                (told.value, told.blocks.len()),
                (json!(texts.join("\n")), 0)
            );
        }
        let more = json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"result": "b"}});
        assert_eq!(output(more).value, json!("a\n{\"result\":\"b\"}"));
    }

    #[test]
    fn the_bytes_of_an_image_are_told_once() {
        let data = format!("{}=", "iVBORw0KGgo".repeat(100).get(..1023).unwrap());
        let told = output(json!({
            "content": [
                {"type": "text", "text": format!("{{\"png\": \"{data}\"}}")},
                {"type": "image", "data": data, "mimeType": "image/png"},
            ],
            "structuredContent": {"png": data, "width": 1},
        }));
        let all = format!("{} {:?}", told.value, told.blocks);
        assert_eq!(all.matches(data.as_str()).count(), 1, "{all}");
        assert!(all.contains("see below"), "{all}");
    }

    #[test]
    fn a_block_of_an_unknown_kind_costs_itself_alone() {
        let result = json!({"content": [
            {"type": "text", "text": "before"},
            {"type": "hologram", "shape": "cube"},
            {"type": "text", "text": "after"},
        ]});
        let ToolOutcome::Ok(told) = outcome_of(result).outcome else {
            panic!("an outcome")
        };
        let text = told.value.as_str().unwrap();
        assert!(
            text.starts_with("before\n[a block of the unknown type `hologram`]"),
            "{text}"
        );
        assert!(text.contains("cube") && text.ends_with("after"), "{text}");
    }

    #[test]
    fn an_error_of_the_server_is_one_for_the_model() {
        let error =
            read(json!({"content": [{"type": "text", "text": "no such issue"}], "isError": true}));
        assert_eq!(
            error,
            ToolOutcome::error(ToolErrorCode::Failed, "no such issue")
        );
        let silent = read(json!({"content": [], "isError": true}));
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

    #[tokio::test]
    async fn the_whole_of_a_result_that_was_shortened_is_in_a_file() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("s/c/result.txt");
        let text = format!("begin{}end", "x".repeat(2 * TEXT_BYTES_MAX));
        let result = json!({"content": [{"type": "text", "text": text}]});
        let long = outcome(serde_json::from_value(result).unwrap());
        let ToolOutcome::Ok(told) = long.kept_in(Some(file.clone())).await else {
            panic!("an outcome")
        };
        assert_eq!(told.spill.as_deref(), file.to_str());
        assert!(
            told.value
                .as_str()
                .unwrap()
                .contains(file.to_str().unwrap())
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

        let short = json!({"content": [{"type": "text", "text": "words"}]});
        let short = outcome(serde_json::from_value(short).unwrap());
        let other = home.path().join("other.txt");
        let ToolOutcome::Ok(told) = short.kept_in(Some(other.clone())).await else {
            panic!("an outcome")
        };
        assert!(told.spill.is_none() && !other.exists());
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
