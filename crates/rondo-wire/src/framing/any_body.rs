//! Properties of the frames of any body, however it is cut. A fuzz target includes this file, and
//! a test feeds it the fuzzer's findings.

use crate::Bounds;
use crate::framing::{BodyEnd, Frame, Framer};
use rondo_types::ModelError;

/// Bounds low enough to be met by short bodies.
const SMALL: Bounds = Bounds {
    line_bytes_max: 60,
    event_bytes_max: 100,
    response_bytes_max: 1000,
    open_calls_max: 1,
    candidates_max: 1,
};

/// The frames of a body as text, and how it ended.
#[derive(Debug, PartialEq)]
struct Framed {
    pushed: Vec<(String, Vec<u8>)>,
    last: Vec<(String, Vec<u8>)>,
    end: Result<BodyEnd, ModelError>,
}

/// Fails when framing breaks a promise. The first byte of `input` chooses the bounds, the second
/// the size of the pieces, the third where to end early; the rest is the body.
pub(crate) fn check(input: &[u8]) {
    let Some(([small, size, end], body)) = input.split_first_chunk::<3>() else {
        return;
    };
    let bounds = if small % 2 == 0 {
        Bounds::default()
    } else {
        SMALL
    };
    let whole = frames(bounds, std::iter::once(body));
    let size = usize::from(*size).max(1);
    assert_eq!(frames(bounds, body.chunks(size)), whole, "the cut matters");
    let at = body.len() * usize::from(*end) / 256;
    let head = frames(bounds, std::iter::once(body.get(..at).unwrap_or_default()));
    assert!(
        whole.pushed.starts_with(&head.pushed),
        "what came first depends on what came later: {head:?} {whole:?}"
    );
    check_payloads(&whole, body, bounds);
}

fn frames<'p>(bounds: Bounds, mut pieces: impl Iterator<Item = &'p [u8]>) -> Framed {
    let mut framer = Framer::new(bounds);
    let (mut pushed, mut last) = (Vec::new(), Vec::new());
    let read = pieces.try_for_each(|piece| {
        framer.read(piece, &mut |frame| {
            pushed.push(owned(frame));
            Ok(())
        })
    });
    let end = read.and_then(|()| {
        framer.finish(&mut |frame| {
            last.push(owned(frame));
            Ok(())
        })
    });
    Framed { pushed, last, end }
}

fn owned(frame: Frame<'_>) -> (String, Vec<u8>) {
    match frame {
        Frame::Json { event, text } => (event.to_owned(), text.to_vec()),
        Frame::ErrorField(text) => ("error field".to_owned(), text.to_vec()),
    }
}

/// PayloadDecoder are within the bounds, not blank, and out of the body.
fn check_payloads(framed: &Framed, body: &[u8], bounds: Bounds) {
    let mut bytes = 0;
    for (event, text) in framed.pushed.iter().chain(&framed.last) {
        assert!(text.len() <= bounds.event_bytes_max.max(bounds.line_bytes_max));
        assert!(event == "error field" || !text.trim_ascii().is_empty());
        bytes += text.len();
    }
    assert!(bytes <= body.len(), "{bytes} bytes out of {}", body.len());
}
