//! `rondo wire`: decodes a reply's body, or encodes a request, for bug reports and tests.

use super::report::write_failed;
use crate::cli::{WireArgs, WireCommand};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::accumulator::{Accumulator, ReplyBounds};
use rondo_core::clock::Clock;
use rondo_types::{
    Candidate, ErrorClass, Message, ModelError, ModelRequest, Opaque, Origin, Part, Reply,
    Sampling, ToolChoice, Transcript, Usage,
};
use rondo_wire::{Bounds, Decoder, Dialect, Encoded, LoweringNote, Target};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// The bound on a file, in bytes; more than any reply may be.
const INPUT_BYTES_MAX: u64 = 128 << 20;
/// Placeholder for the provider and the model, which a body alone does not name.
const UNNAMED: &str = "wire";

/// Runs the command.
pub(super) fn run(args: WireArgs, output: &Output) -> Result<Exit> {
    let text = match args.command {
        WireCommand::Decode {
            dialect,
            status,
            chunk_bytes,
            headers,
            file,
        } => {
            let dialect = find(&dialect)?;
            let body = read(file.as_deref())?;
            let chunk = chunk_bytes.map_or(body.len(), |bytes| {
                usize::try_from(bytes).unwrap_or(usize::MAX)
            });
            let decoded = if (200..300).contains(&status) {
                decode(dialect, &body, chunk)
            } else {
                refused(dialect, status, &headers, &body)
            };
            format!("{decoded}\n").into_bytes()
        }
        WireCommand::Encode {
            dialect,
            explain,
            json,
            transcript,
        } => {
            let encoded = encode(find(&dialect)?, &read(Some(&transcript))?)?;
            match explain {
                true if !json => {
                    let text = explained(&encoded.notes, json, output)?;
                    output.stdout(&text).map_err(write_failed)?;
                    return Ok(Exit::Answer);
                }
                true => explained(&encoded.notes, json, output)?.into_bytes(),
                false => body(encoded, output),
            }
        }
    };
    let text = String::from_utf8_lossy(&text);
    output.json(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

fn find(name: &str) -> Result<&'static dyn Dialect> {
    rondo_wire::dialect(name).ok_or_else(|| {
        let known = rondo_wire::dialect_names().join(", ");
        CliError::new(Exit::Usage, format_args!("there is no dialect `{name}`")).hint(format!(
            "the dialects are: {known}, and `react+DIALECT` over each"
        ))
    })
}

fn read(file: Option<&Path>) -> Result<Vec<u8>> {
    let file = file.filter(|path| *path != Path::new("-"));
    let shown = file.map_or("standard input".into(), |path| path.display().to_string());
    let mut bytes = Vec::new();
    let read = match file {
        Some(path) => {
            File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes))
        }
        None => io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX + 1)
            .read_to_end(&mut bytes),
    };
    read.map_err(|err| {
        let context = format!("failed to read `{shown}`");
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    })?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > INPUT_BYTES_MAX {
        let message = format!("`{shown}` is larger than {INPUT_BYTES_MAX} bytes");
        return Err(CliError::new(Exit::Input, message));
    }
    Ok(bytes)
}

fn target(dialect: &dyn Dialect) -> Target {
    Target::new(Origin {
        dialect: dialect.name().to_owned(),
        provider: UNNAMED.to_owned(),
        model: UNNAMED.to_owned(),
    })
}

/// Reads a response whose status is not 2xx.
fn refused(dialect: &dyn Dialect, status: u16, headers: &[(String, String)], body: &[u8]) -> Value {
    let header = |name: &str| {
        let found = headers.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.clone())
    };
    let error = dialect.error(status, &header, body, Clock::system().now());
    report(&Reply::default(), None, Some(&error), true)
}

fn decode(dialect: &dyn Dialect, body: &[u8], chunk_bytes: usize) -> Value {
    let mut decoder = dialect.decoder(&target(dialect), Bounds::default());
    let mut reply = Accumulator::new(ReplyBounds::default());
    let result = feed(decoder.as_mut(), &mut reply, body, chunk_bytes.max(1));
    let usage = decoder.reported_usage();
    let clean = result.is_ok();
    let reply = reply.finish();
    let error = result.err().or_else(|| blocked(&reply));
    report(&reply, usage, error.as_ref(), clean)
}

/// A blocked prompt has no candidate whose finish reason could say so.
fn blocked(reply: &Reply) -> Option<ModelError> {
    let reason = reply.prompt_blocked.as_ref()?;
    let message = format!("the provider blocked the prompt: {reason}");
    Some(ModelError::new(ErrorClass::ContentFilter, message))
}

fn feed(
    decoder: &mut dyn Decoder,
    reply: &mut Accumulator,
    body: &[u8],
    chunk_bytes: usize,
) -> Result<(), ModelError> {
    let mut events = Vec::new();
    for chunk in body.chunks(chunk_bytes) {
        let decoded = decoder.push(chunk, &mut events);
        take(reply, &mut events)?;
        decoded?;
    }
    let ended = decoder.finish(&mut events);
    take(reply, &mut events)?;
    ended
}

fn take(
    reply: &mut Accumulator,
    events: &mut Vec<rondo_types::ModelEvent>,
) -> Result<(), ModelError> {
    events.drain(..).try_for_each(|event| reply.push(event))
}

/// Returns the one object. An `ended_cleanly` of true means that the body ended as its protocol
/// ends, which a refusal with a status does; `usage` holds the provider's own figures.
fn report(
    reply: &Reply,
    usage: Option<Usage>,
    error: Option<&ModelError>,
    ended_cleanly: bool,
) -> Value {
    let empty = Candidate::default();
    let candidate = reply.candidates.first().unwrap_or(&empty);
    let usage = usage.or(reply.usage);
    json!({
        "text": candidate.text(),
        "reasoning": candidate.reasoning(),
        "refusal": candidate.refusal(),
        "tool_calls": candidate.tool_calls().map(call).collect::<Vec<_>>(),
        "finish_reason": candidate.finish_reason.map(rondo_types::FinishReason::as_str),
        "raw_finish_reasons": candidate.raw_finish_reasons,
        "usage": usage.map(|usage| json!({
            "input": usage.input,
            "output": usage.output,
            "reasoning": usage.reasoning,
            "cache_read": usage.cache_read,
        })),
        "error": error.map(|error| json!({
            "kind": error.class.as_str(),
            "message": error.message,
            "retryable": error.retryable,
            "retry_after_ms": error.retry_after_ms,
        })),
        "opaque_parts": candidate.parts.iter().filter(|part| is_opaque(part)).count(),
        "ended_cleanly": ended_cleanly,
    })
}

fn call(call: &rondo_types::ToolCall) -> Value {
    let arguments = serde_json::from_str::<Value>(&call.arguments)
        .ok()
        .filter(Value::is_object);
    json!({
        "id": call.wire_id,
        "name": call.name,
        "arguments": arguments,
        "arguments_raw": call.arguments,
        "complete": call.complete,
    })
}

/// Counts what must go back unchanged: parts of their own, and data attached to other parts.
fn is_opaque(part: &Part) -> bool {
    match part {
        Part::Opaque(_) => true,
        Part::Text(text) | Part::Refusal(text) => carries(text.opaque.as_ref()),
        Part::Reasoning(reasoning) => carries(reasoning.opaque.as_ref()),
        Part::ToolCall(call) => carries(call.opaque.as_ref()),
        Part::ToolResult(_) | Part::Media(_) => false,
    }
}

/// An empty object only ends the part that it is attached to.
fn carries(opaque: Option<&Opaque>) -> bool {
    opaque.is_some_and(|opaque| opaque.json != "{}")
}

fn encode(dialect: &dyn Dialect, input: &[u8]) -> Result<Encoded> {
    let request = parse_request(dialect, input)?;
    let mut target = target(dialect);
    target.origin.model.clone_from(&request.model);
    if let Some(origin) = latest_origin(&request.messages, dialect.name()) {
        target.origin.provider.clone_from(&origin.provider);
    }
    Ok(dialect.encode(&request, &target))
}

/// Returns the body, and says beside it what was left out or changed.
fn body(encoded: Encoded, output: &Output) -> Vec<u8> {
    for note in &encoded.notes {
        output.note(&note.to_string());
    }
    let mut body = encoded.body;
    body.push(b'\n');
    body
}

/// Returns the parts that were left out or changed, one a line.
fn explained(notes: &[LoweringNote], json: bool, output: &Output) -> Result<String> {
    if notes.is_empty() {
        output.note("everything is sent unchanged");
    }
    let mut lines = String::new();
    for note in notes {
        if json {
            let line = serde_json::to_string(note).map_err(|err| {
                CliError::caused(Exit::Error, anyhow::Error::new(err).context("no JSON"))
            })?;
            lines.push_str(&line);
        } else {
            lines.push_str(&note.to_string());
        }
        lines.push('\n');
    }
    Ok(lines)
}

/// Returns the origin of the latest message of a dialect: the model to ask again.
fn latest_origin<'a>(messages: &'a [Arc<Message>], dialect: &str) -> Option<&'a Origin> {
    let mut origins = messages.iter().rev().filter_map(|it| it.origin.as_ref());
    origins.find(|origin| origin.dialect == dialect)
}

/// A transcript is an array of messages; a request is an object.
fn parse_request(dialect: &dyn Dialect, input: &[u8]) -> Result<ModelRequest> {
    let invalid = |err: serde_json::Error| {
        let context = "this is neither a transcript nor a request";
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    };
    let value: Value = serde_json::from_slice(input).map_err(invalid)?;
    if value.is_object() {
        return serde_json::from_value(value).map_err(invalid);
    }
    let messages: Vec<Message> = serde_json::from_value(value).map_err(invalid)?;
    let messages: Transcript = messages.into_iter().map(Arc::new).collect();
    let own = latest_origin(&messages, dialect.name());
    let any = || messages.iter().rev().find_map(|said| said.origin.as_ref());
    let model = own.or_else(any).map(|origin| origin.model.clone());
    Ok(ModelRequest {
        model: model.unwrap_or_else(|| UNNAMED.to_owned()),
        system: Vec::new().into(),
        messages,
        tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    })
}
