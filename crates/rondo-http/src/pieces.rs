//! Request bodies that are sent from where their pieces lie.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use reqwest::RequestBuilder;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Gives a request its body, of a known length and without copying it; none where there is nothing.
pub(crate) fn with_body(builder: RequestBuilder, pieces: &[Bytes]) -> RequestBuilder {
    match pieces {
        [] => builder,
        [whole] => builder.body(whole.clone()),
        pieces => builder.body(reqwest::Body::wrap(Pieces {
            left: pieces.iter().cloned().collect(),
        })),
    }
}

struct Pieces {
    left: VecDeque<Bytes>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.left.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes: usize = self.left.iter().map(Bytes::len).sum();
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
