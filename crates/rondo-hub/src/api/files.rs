//! Files that go with the messages of a chat, sent as bytes that no browser shows.

use super::call::{Call, Caller};
use super::chats::unreadable;
use super::error::ApiError;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use std::fs::File;
use std::io::{self, Read as _};
use tokio::task::spawn_blocking;

/// Bytes that are read at once.
const PIECE_BYTES: u64 = 64 << 10;

pub(super) async fn get(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let chat = call.chat(&caller)?;
    let (message, file) = (call.path_number(1)?, call.path_number(2)?);
    let found = call
        .shared
        .parts()?
        .messages
        .file(&chat, message, file)
        .await;
    let gone = || ApiError::not_found("there is no such file");
    let attached = found.map_err(unreadable)?.ok_or_else(gone)?;
    let opened = spawn_blocking(move || {
        let file = attached.open()?;
        let bytes = file.metadata()?.len();
        io::Result::Ok((file, bytes))
    });
    let opened = opened.await.map_err(|error| ApiError::internal(&error))?;
    let (file, bytes) = opened.map_err(|_| gone())?;
    let mut response = Body::from_stream(pieces(file, bytes)).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    Ok(response)
}

/// Reads so many bytes, piece by piece as they are taken.
fn pieces(file: File, bytes: u64) -> impl stream::Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((file, bytes), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = spawn_blocking(move || {
            let mut piece = Vec::new();
            let taken = (&mut file)
                .take(left.min(PIECE_BYTES))
                .read_to_end(&mut piece);
            taken.map(|_| (file, piece))
        });
        let (file, piece) = read.await.map_err(io::Error::other)??;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let left = left.saturating_sub(piece.len() as u64);
        Ok(Some((Bytes::from(piece), (file, left))))
    })
}
