//! Properties of any body, however it is cut. The fuzz targets include this file, and a test feeds
//! it their findings.

use rondo_types::{ModelError, ModelEvent, Origin, ToolSpec};
use rondo_wire::{Bounds, Decoder, Target, dialect};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes in front of the body that say how to decode it.
pub(crate) const HEAD_BYTES: usize = 4;

/// Bounds low enough to be met by short bodies.
const SMALL: Bounds = Bounds {
    line_bytes_max: 500,
    event_bytes_max: 700,
    response_bytes_max: 2500,
    open_calls_max: 3,
    candidates_max: 2,
};

/// The tools on offer where calls are read from text.
const TOOLS: [&str; 3] = ["exec", "get_weather", "f"];

/// Bytes that a decoder hands out for each byte at the most: a byte that is not UTF-8 becomes three, and
/// held text may come again with the call that it is.
const OUTPUT_FACTOR: usize = 8;

/// Set in the first byte: decode within [`SMALL`], or read calls from text.
const FLAG_SMALL: u8 = 1;
const FLAG_LENIENT: u8 = 2;

/// A body, how to cut it, and where to end it early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    flags: u8,
    /// The size of the pieces, or 0 for pieces of changing sizes.
    size: u8,
    seed: u16,
    pub(crate) body: &'a [u8],
}

/// Result of decoding a body.
#[derive(Debug, PartialEq)]
struct Decoded {
    /// Events before the end.
    pushed: Vec<ModelEvent>,
    /// Events with the end.
    last: Vec<ModelEvent>,
    error: Option<ModelError>,
}

impl<'a> Case<'a> {
    /// Reads a case: flags, the size of the pieces, a seed in two bytes, the body.
    pub(crate) fn read(input: &'a [u8]) -> Option<Self> {
        let ([flags, size, low, high], body) = input.split_first_chunk::<HEAD_BYTES>()?;
        Some(Self {
            flags: *flags,
            size: *size,
            seed: u16::from_le_bytes([*low, *high]),
            body,
        })
    }

    /// Starts the decoder of a dialect.
    pub(crate) fn decoder(&self, name: &str) -> Box<dyn Decoder> {
        let mut target = Target::new(Origin {
            dialect: name.to_owned(),
            provider: "any".to_owned(),
            model: "some-model".to_owned(),
        });
        target.quirks.lenient_tool_calls = self.flags & FLAG_LENIENT != 0;
        target.tools = Arc::new(TOOLS.map(named).to_vec());
        let dialect = dialect(name).expect("a known dialect");
        dialect.decoder(&target, self.bounds())
    }

    /// Returns the pieces of the body.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (fixed, mut state) = (usize::from(self.size), u32::from(self.seed));
        let mut rest = self.body;
        std::iter::from_fn(move || {
            // The constants of Numerical Recipes' generator; only its high bits change well.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let any = usize::try_from(state >> 26).unwrap_or(1);
            let len = if fixed == 0 { any } else { fixed }.clamp(1, rest.len().max(1));
            let (piece, tail) = rest.split_at_checked(len)?;
            rest = tail;
            Some(piece)
        })
    }

    fn bounds(&self) -> Bounds {
        if self.flags & FLAG_SMALL == 0 {
            Bounds::default()
        } else {
            SMALL
        }
    }

    fn head(&self) -> &'a [u8] {
        let at = usize::from(self.seed) % (self.body.len() + 1);
        self.body.get(..at).unwrap_or_default()
    }

    fn decode<'p>(&self, name: &str, mut pieces: impl Iterator<Item = &'p [u8]>) -> Decoded {
        let mut decoder = self.decoder(name);
        let (mut pushed, mut last) = (Vec::new(), Vec::new());
        let read = pieces.try_for_each(|piece| decoder.push(piece, &mut pushed));
        let ended = read.and_then(|()| decoder.finish(&mut last));
        Decoded {
            pushed,
            last,
            error: ended.err(),
        }
    }
}

/// Fails when decoding breaks one of the promises.
pub(crate) fn check(name: &str, input: &[u8]) {
    let Some(case) = Case::read(input) else {
        return;
    };
    let whole = case.decode(name, std::iter::once(case.body));
    let pieces = case.decode(name, case.pieces());
    assert_eq!(pieces, whole, "the events depend on the cut");
    let head = case.decode(name, std::iter::once(case.head()));
    assert!(
        whole.pushed.starts_with(&head.pushed),
        "what came first depends on what came later: {head:?} {whole:?}"
    );
    for decoded in [&whole, &head] {
        check_calls(decoded);
        check_output(decoded, case.body.len());
    }
    for (decoded, body) in [(&whole, case.body), (&head, case.head())] {
        let whole_call = finishes_a_call(&decoded.last);
        assert!(
            !whole_call || says_its_end(decoded, body),
            "a call became whole in a body without an end: {decoded:?}"
        );
    }
}

/// Returns whether a body has one of the ends that there are: a finish reason, an end of the
/// protocol, or a document, which ends with its last bracket.
fn says_its_end(decoded: &Decoded, body: &[u8]) -> bool {
    let reason = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
    let text = String::from_utf8_lossy(body);
    let start = text.trim_start_matches(['\u{feff}', '\u{fffd}', ' ', '\t', '\r', '\n']);
    decoded.events().any(reason)
        || text.contains("[DONE]")
        || text.contains("message_stop")
        || start.starts_with(['{', '['])
}

impl Decoded {
    fn events(&self) -> impl Iterator<Item = &ModelEvent> {
        self.pushed.iter().chain(&self.last)
    }
}

/// Calls begin once, end once, and end only if the body ends well.
fn check_calls(decoded: &Decoded) {
    assert!(
        !finishes_a_call(&decoded.pushed),
        "a call became whole before the end"
    );
    assert!(
        decoded.error.is_none() || !finishes_a_call(&decoded.last),
        "a call of a broken body became whole"
    );
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in decoded.events() {
        match event {
            ModelEvent::ToolCallStarted { call, .. } => {
                assert!(begun.insert(*call), "call {call} began twice");
            }
            ModelEvent::ToolCallNamed { call, .. } => {
                assert!(begun.contains(call), "call {call} was named unbegun");
            }
            // An empty piece of a call that is not begun says that there is no silence.
            ModelEvent::ToolCallDelta { call, arguments } => {
                let known = begun.contains(call);
                assert!(known || arguments.is_empty(), "call {call} is not begun");
            }
            ModelEvent::ToolCallFinished { call, .. } => {
                assert!(begun.contains(call), "call {call} ended unbegun");
                assert!(ended.insert(*call), "call {call} ended twice");
            }
            _ => {}
        }
    }
}

fn finishes_a_call(events: &[ModelEvent]) -> bool {
    let finished = |event: &ModelEvent| matches!(event, ModelEvent::ToolCallFinished { .. });
    events.iter().any(finished)
}

/// Nothing is handed out that was not sent, but for signs of a few bytes.
fn check_output(decoded: &Decoded, body_bytes: usize) {
    let said: usize = decoded.events().map(said_bytes).sum();
    let max = body_bytes * OUTPUT_FACTOR + OUTPUT_FACTOR;
    assert!(said <= max, "{said} bytes out of {body_bytes}");
    let message = decoded
        .error
        .as_ref()
        .map_or(0, |error| error.message.len());
    assert!(message < 1000, "an error says {message} bytes");
}

fn said_bytes(event: &ModelEvent) -> usize {
    let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match event {
        ModelEvent::TextDelta { text, .. }
        | ModelEvent::ReasoningDelta { text, .. }
        | ModelEvent::RefusalDelta { text, .. } => text.len(),
        ModelEvent::ToolCallStarted { wire_id, name, .. } => len(wire_id) + name.len(),
        ModelEvent::ToolCallNamed { wire_id, name, .. } => len(wire_id) + len(name),
        ModelEvent::ToolCallDelta { arguments, .. } => arguments.len(),
        ModelEvent::ToolCallFinished { opaque, .. } => {
            opaque.as_ref().map_or(0, |opaque| opaque.json.len())
        }
        ModelEvent::PartClosed { opaque, .. } | ModelEvent::OpaquePart { opaque, .. } => {
            opaque.json.len()
        }
        ModelEvent::Finished { raw, .. } => raw.len(),
        ModelEvent::PromptBlocked { reason } => reason.len(),
        _ => 0,
    }
}

fn named(tool: &str) -> ToolSpec {
    ToolSpec {
        name: tool.to_owned(),
        ..ToolSpec::default()
    }
}
