//! Rewrites a conversation so that a dialect without tools carries calls and results as text.

use super::output;
use super::prompt::with_tools;
use super::quoting::{escape, nonce};
use super::written::{SourceText, is_react};
use crate::Target;
use crate::lowering::{Lowering, LoweringNote, Notes, results};
use rondo_types::{
    CallId, Message, ModelRequest, Origin, Part, Role, TextPart, ToolCall, ToolChoice, ToolResult,
};
use std::sync::Arc;

/// A request as the dialect below gets it.
pub(super) struct RewrittenRequest {
    pub(super) request: ModelRequest,
    notes: Vec<LoweringNote>,
    /// Which part of the transcript each part of the messages came from, the first if several
    /// became one.
    sources: Vec<Vec<usize>>,
}

impl RewrittenRequest {
    /// Returns all notes, those of the dialect below with the places that the transcript has.
    pub(super) fn notes(self, below: Vec<LoweringNote>) -> Vec<LoweringNote> {
        let Self {
            mut notes, sources, ..
        } = self;
        notes.extend(below.into_iter().map(|mut note| {
            let parts = note.message.and_then(|index| sources.get(index));
            note.part = note.part.map(|part| {
                let source = parts.and_then(|parts| parts.get(part));
                source.copied().unwrap_or(part)
            });
            note
        }));
        notes.sort_by_key(LoweringNote::place);
        notes
    }
}

/// Rewrites a request so that the dialect below, which gets no tools, carries calls as text.
pub(super) fn rewrite(request: &ModelRequest, target: &Target, base: &str) -> RewrittenRequest {
    let mut rewriter = Rewriter {
        nonce: nonce(request),
        base,
        target: &target.origin,
        ignored: Vec::new(),
        notes: Notes::default(),
        sources: Vec::with_capacity(request.messages.len()),
    };
    let messages = request.messages.iter().enumerate();
    let messages = messages
        .map(|(index, message)| rewriter.message(index, message))
        .collect();
    rewriter.notes.enter(None);
    let response_schema = request.response_schema.clone();
    if response_schema.is_some() && !request.tools.is_empty() {
        rewriter.notes.add(Lowering::SchemaDropped);
    }
    let rewritten = ModelRequest {
        model: request.model.clone(),
        system: with_tools(&request.system, &request.tools).into(),
        messages,
        tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        sampling: request.sampling.clone(),
        response_schema: response_schema.filter(|_| request.tools.is_empty()),
    };
    RewrittenRequest {
        request: rewritten,
        notes: rewriter.notes.into_list(),
        sources: rewriter.sources,
    }
}

struct Rewriter<'a> {
    nonce: String,
    base: &'a str,
    target: &'a Origin,
    /// How many calls were dropped behind which call of the latest assistant message.
    ignored: Vec<(CallId, u32)>,
    notes: Notes,
    /// [`RewrittenRequest::sources`].
    sources: Vec<Vec<usize>>,
}

impl Rewriter<'_> {
    fn message(&mut self, index: usize, message: &Arc<Message>) -> Arc<Message> {
        self.notes.enter(Some(index));
        match message.role {
            Role::User => {
                self.sources.push((0..message.parts.len()).collect());
                Arc::clone(message)
            }
            Role::Assistant => Arc::new(self.assistant(message)),
            Role::Tool => Arc::new(self.observations(message)),
        }
    }

    fn assistant(&mut self, message: &Message) -> Message {
        self.ignored.clear();
        let mut parts: Vec<Part> = Vec::with_capacity(message.parts.len());
        let mut sources = Vec::with_capacity(message.parts.len());
        for (index, part) in message.parts.iter().enumerate() {
            self.notes.enter_part(Some(index));
            match part {
                Part::ToolCall(call) => {
                    let block = self.block(call);
                    append(&mut parts, &block);
                }
                other => parts.push(other.clone()),
            }
            sources.resize(parts.len(), index);
        }
        self.notes.enter_part(None);
        self.sources.push(sources);
        Message {
            role: Role::Assistant,
            parts,
            origin: message.origin.as_ref().map(|origin| self.below(origin)),
            synthetic: message.synthetic,
            paused: message.paused,
            from_outside: message.from_outside,
        }
    }

    /// Origin of this dialect's messages for the dialect below.
    fn below(&self, origin: &Origin) -> Origin {
        if !is_react(&origin.dialect) || origin.provider != self.target.provider {
            return origin.clone();
        }
        Origin {
            dialect: self.base.to_owned(),
            ..origin.clone()
        }
    }

    fn block(&mut self, call: &ToolCall) -> String {
        match SourceText::of(call) {
            Some(written) => {
                let ignored = (call.id.clone(), written.ignored_calls);
                self.ignored.push(ignored);
                written.text
            }
            None => {
                if let Some(opaque) = &call.opaque {
                    let origin = Some(&opaque.origin);
                    let what = Lowering::OpaqueDropped;
                    self.notes.add_from(what, origin, self.target);
                }
                canonical(call)
            }
        }
    }

    fn observations(&mut self, message: &Message) -> Message {
        let mut texts = Vec::new();
        let mut media = Vec::new();
        let mut sources = vec![0];
        for (index, result) in results(message) {
            texts.push(self.observation(result));
            let before = media.len();
            media.extend(result.media().cloned().map(Part::Media));
            sources.resize(media.len() + 1, index);
            if media.len() > before {
                self.notes.enter_part(Some(index));
                self.notes.add(Lowering::MediaMoved);
            }
        }
        self.notes.enter_part(None);
        self.sources.push(sources);
        let mut parts = vec![Part::text(texts.join("\n"))];
        parts.append(&mut media);
        Message {
            parts,
            synthetic: message.synthetic,
            ..Message::user("")
        }
    }

    fn observation(&self, result: &ToolResult) -> String {
        let content = output::of_result(result);
        let content = escape(&content);
        let (nonce, name) = (&self.nonce, escape(&result.name));
        let mut text = format!(
            "[output of {name}, {nonce}]\n<observation>\n{content}\n</observation>\n[end of output, {nonce}]"
        );
        let ignored = self.ignored.iter().find(|(id, _)| *id == result.call_id);
        if let Some((_, count)) = ignored.filter(|(_, count)| *count > 0) {
            text.push_str(&format!(
                "\nYou made {} tool calls in one reply: only the first was run, and whatever you wrote after it was ignored. Make one call, then wait for its <observation>.",
                u64::from(*count) + 1
            ));
        }
        text
    }
}

fn canonical(call: &ToolCall) -> String {
    format!(
        "<tool_code>\n<name>{}</name>\n<parameters>\n{}\n</parameters>\n</tool_code>",
        call.name, call.arguments
    )
}

/// Appends a block to the text before it, on a line of its own.
fn append(parts: &mut Vec<Part>, block: &str) {
    if let Some(Part::Text(TextPart { text, opaque: None })) = parts.last_mut() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(block);
        return;
    }
    parts.push(Part::text(block));
}
