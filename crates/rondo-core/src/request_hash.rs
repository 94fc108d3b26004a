//! Hashes of requests and of their parts, at the cost of what is new in each.

use crate::ports::RequestParts;
use data_encoding::HEXLOWER;
use rondo_types::{Concurrency, Effects, Message, ModelRequest, Recovery, ToolSpec, Transcript};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::io;
use std::sync::Arc;

/// SHA-256.
pub(crate) type Digest = [u8; 32];

/// Bytes of a digest that are kept of a part: they tell where two requests differ, the hash of the
/// whole tells whether.
const PART_BYTES: usize = 8;

/// Hashes the requests of a turn. The digest of each message covers those before it, and is kept for
/// as long as the requests begin with the same messages.
#[derive(Default)]
pub(crate) struct RequestHasher {
    known: Vec<(Arc<Message>, Digest)>,
    tools: Option<(Arc<Vec<ToolSpec>>, Digest)>,
    /// Messages that were listed before, or with the turns before.
    listed: usize,
}

/// Recorded hashes of a request.
pub(crate) struct RequestHash {
    /// SHA-256 over everything in the request, in hex.
    pub(crate) whole: String,
    /// Hashes of its parts, which show where it differs from another.
    pub(crate) parts: RequestParts,
}

/// Rest of a request without its conversation, prompt and tools.
#[derive(Serialize)]
pub(crate) struct RequestParameters<'a> {
    model: &'a str,
    tool_choice: rondo_types::ToolChoice,
    sampling: &'a rondo_types::Sampling,
    response_schema: Option<&'a serde_json::Value>,
}

impl<'a> RequestParameters<'a> {
    pub(crate) fn of(request: &'a ModelRequest) -> Self {
        Self {
            model: &request.model,
            tool_choice: request.tool_choice,
            sampling: &request.sampling,
            response_schema: request.response_schema.as_ref(),
        }
    }
}

/// Hashed part of a tool: the fields that all versions of the records know. No model reads the other fields of a spec,
/// so older records have the same hash.
#[derive(Serialize)]
struct HashedTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a serde_json::Value,
    effects: Effects,
    concurrency: Concurrency,
    recovery: Recovery,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    polls: bool,
}

/// Returns the tools as a hash covers them.
pub(crate) fn hashed_tools(tools: &[ToolSpec]) -> impl Serialize + '_ {
    fn hashed(tool: &ToolSpec) -> HashedTool<'_> {
        HashedTool {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            effects: tool.effects,
            // Earlier records call what is not declared exclusive.
            concurrency: match tool.concurrency {
                Concurrency::Undeclared => Concurrency::Exclusive,
                declared => declared,
            },
            recovery: tool.recovery,
            polls: tool.polls,
        }
    }
    tools.iter().map(hashed).collect::<Vec<_>>()
}

impl RequestHasher {
    /// Leaves out so many messages from the list: they are recorded elsewhere.
    pub(crate) fn skip(&mut self, messages: usize) {
        self.listed = self.listed.max(messages);
    }

    pub(crate) fn hash(&mut self, request: &ModelRequest) -> RequestHash {
        self.chain(&request.messages);
        let from = self.listed.min(self.known.len());
        self.listed = self.known.len();
        let system = digest(&[], &request.system);
        let tools = self.tools(&request.tools);
        let rest = digest(&[], &RequestParameters::of(request));
        let mut whole = Sha256::new_with_prefix(self.before(self.known.len()));
        [system, tools, rest].iter().for_each(|it| whole.update(it));
        let messages = self.known.iter().skip(from).map(|(_, it)| short(it));
        let parts = RequestParts {
            system: short(&system),
            tools: short(&tools),
            rest: short(&rest),
            from: u32::try_from(from).unwrap_or(u32::MAX),
            before: short(&self.before(from)),
            messages: messages.collect(),
        };
        RequestHash {
            whole: HEXLOWER.encode(&whole.finalize()),
            parts,
        }
    }

    /// Returns the digest of each message of the last request, which covers those before it.
    pub(crate) fn messages(&self) -> impl Iterator<Item = String> + '_ {
        self.known.iter().map(|(_, digest)| short(digest))
    }

    /// Brings the known digests up to the messages.
    fn chain(&mut self, messages: &Transcript) {
        let pairs = self.known.iter().zip(messages);
        let kept = pairs.take_while(|((known, _), message)| Arc::ptr_eq(known, message));
        let kept = kept.count();
        if kept < self.known.len() {
            self.known.truncate(kept);
            self.listed = self.listed.min(kept);
        }
        for message in messages.iter().skip(kept) {
            let next = digest(&self.before(self.known.len()), message);
            self.known.push((Arc::clone(message), next));
        }
    }

    fn tools(&mut self, tools: &Arc<Vec<ToolSpec>>) -> Digest {
        match &self.tools {
            Some((known, digest)) if Arc::ptr_eq(known, tools) => *digest,
            _ => {
                let digest = digest(&[], &hashed_tools(tools));
                self.tools = Some((Arc::clone(tools), digest));
                digest
            }
        }
    }

    /// Returns the digest of the messages before that index.
    fn before(&self, index: usize) -> Digest {
        let last = index.checked_sub(1).and_then(|last| self.known.get(last));
        last.map_or(Digest::default(), |(_, digest)| *digest)
    }
}

/// SHA-256 of what comes before and a value's JSON, without building the JSON in memory.
pub(crate) fn digest<T: Serialize + ?Sized>(before: &[u8], value: &T) -> Digest {
    struct Sink(Sha256);
    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink(Sha256::new_with_prefix(before));
    match serde_json::to_writer(&mut sink, value) {
        Ok(()) => sink.0.finalize().into(),
        Err(_) => Digest::default(),
    }
}

fn short(digest: &Digest) -> String {
    HEXLOWER.encode(digest.get(..PART_BYTES).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{Sampling, ToolChoice};

    fn request(messages: &[Arc<Message>]) -> ModelRequest {
        ModelRequest {
            model: "m".into(),
            system: vec![].into(),
            messages: messages.to_vec(),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            response_schema: None,
        }
    }

    fn said(texts: &[&str]) -> Vec<Arc<Message>> {
        let messages = texts.iter().map(|it| Arc::new(Message::user(*it)));
        messages.collect()
    }

    #[test]
    fn a_requests_hash_tells_of_all_of_it_whatever_was_hashed_before() {
        let said = said(&["a", "b", "c"]);
        let other = [Arc::clone(&said[0]), Arc::new(Message::user("x"))];
        let mut kept = RequestHasher::default();
        let mut all = Vec::new();
        for messages in [&said[..1], &said[..2], &said, &other, &said[1..], &said] {
            let hash = kept.hash(&request(messages)).whole;
            let fresh = RequestHasher::default().hash(&request(messages)).whole;
            assert_eq!(hash, fresh);
            all.push(hash);
        }
        assert_eq!(all.remove(2), all.remove(4));
        let changed = [
            ModelRequest {
                tool_choice: ToolChoice::None,
                ..request(&said)
            },
            ModelRequest {
                system: vec!["s".into()].into(),
                ..request(&said)
            },
        ];
        all.extend(changed.iter().map(|it| kept.hash(it).whole));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn what_no_model_reads_of_a_tool_is_in_no_hash() {
        let hash = |spec: ToolSpec| {
            let tools = Arc::new(vec![spec]);
            let request = ModelRequest {
                tools,
                ..request(&[])
            };
            RequestHasher::default().hash(&request).whole
        };
        let plain = ToolSpec {
            concurrency: rondo_types::Concurrency::Exclusive,
            ..ToolSpec::default()
        };
        assert_eq!(hash(plain.clone()), hash(ToolSpec::default()));
        // The form of versions 1 and 2: the spec's own JSON, as long as that says nothing new.
        let form = |spec: &ToolSpec| digest(&[], &[spec]);
        assert_eq!(
            form(&plain),
            digest(&[], &hashed_tools(std::slice::from_ref(&plain)))
        );
        let told = ToolSpec {
            kind: rondo_types::ToolKind::Edit,
            hints: rondo_types::ToolHints::looks_only(),
            timeout: Some(std::time::Duration::from_secs(1)),
            ..plain.clone()
        };
        assert_ne!(form(&plain), form(&told));
        assert_eq!(hash(plain.clone()), hash(told));
        let polls = ToolSpec {
            polls: true,
            ..plain.clone()
        };
        assert_ne!(hash(plain), hash(polls));
    }

    #[test]
    fn each_message_is_listed_once_and_told_apart_by_what_came_before() {
        let said = said(&["a", "b", "c", "d"]);
        let mut hasher = RequestHasher::default();
        hasher.skip(1);
        let listed = |hasher: &mut RequestHasher, to| {
            let parts = hasher.hash(&request(&said[..to])).parts;
            (parts.from, parts.messages)
        };
        let (from, first) = listed(&mut hasher, 2);
        assert_eq!((from, first.len()), (1, 1));
        assert_eq!(listed(&mut hasher, 2), (2, vec![]));
        let (from, more) = listed(&mut hasher, 4);
        assert_eq!((from, more.len()), (2, 2));
        let all: Vec<String> = hasher.messages().collect();
        assert_eq!(all[1..], [first, more].concat());
        let parts = hasher.hash(&request(&said)).parts;
        assert_eq!(Some(&parts.before), all.last());
    }

    #[test]
    fn a_conversation_that_was_cut_is_listed_from_its_first_new_message() {
        let said = said(&["a", "b", "c"]);
        let mut hasher = RequestHasher::default();
        hasher.hash(&request(&said));
        let cut = [Arc::new(Message::user("summary")), Arc::clone(&said[2])];
        let parts = hasher.hash(&request(&cut)).parts;
        assert_eq!((parts.from, parts.messages.len()), (0, 2));
    }
}
