//! Files that go with the messages of a chat. They lie in the chat's own directory, where the agent writes, too: so they are
//! opened beneath it, whatever links are there by now, and are sent as bytes that no browser shows.

use super::call::{Call, Caller};
use super::chats::{first_session, unreadable};
use super::error::ApiError;
use crate::hub::CHATS_DIR;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use futures_util::stream;
use rondo_types::SessionId;
use std::io::{self, Read as _};
use std::path::Path;
use tokio::task::spawn_blocking;

/// Bytes of a file that is sent.
const FILE_BYTES_MAX: u64 = 50 << 20;
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
    let file = found.map_err(unreadable)?.ok_or_else(gone)?;
    // The agent writes to the directory of the chat's session, which is another one once the chat began anew.
    let directory = call.shared.core()?.directory.join(CHATS_DIR);
    let first = chat.session(0);
    let opened = spawn_blocking(move || open_of_chat(&directory, &first, &file.path)).await;
    let opened = opened.map_err(|error| ApiError::internal(&error))?;
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

/// Opens a file in the directory of one of a chat's sessions, all of which lie in `directory`.
fn open_of_chat(directory: &Path, first: &SessionId, path: &Path) -> io::Result<(File, u64)> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let inner = path.strip_prefix(directory).map_err(|_| gone())?;
    let session = inner.components().next().ok_or_else(gone)?;
    let session = session.as_os_str().to_str().ok_or_else(gone)?;
    match first_session(session) == *first {
        true => open_beneath(&directory.join(session), path),
        false => Err(gone()),
    }
}

/// Opens a file beneath a directory, and returns it with its size.
fn open_beneath(directory: &Path, path: &Path) -> io::Result<(File, u64)> {
    let relative = path
        .strip_prefix(directory)
        .map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    let root = Dir::open_ambient_dir(directory, ambient_authority())?;
    // A pipe would wait for its other end.
    let options = OpenOptions::new().read(true).nonblock(true).clone();
    let file = root.open_with(relative, &options)?;
    let metadata = file.metadata()?;
    match metadata.is_file() && metadata.len() <= FILE_BYTES_MAX {
        true => Ok((file, metadata.len())),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_outside_of_the_chats_directory_is_not_opened_whatever_links_there_are() {
        let all = tempfile::TempDir::new().unwrap();
        let first = SessionId::new("api@ada_home");
        let own = all.path().join("api@ada_home");
        fs::create_dir_all(own.join("sub")).unwrap();
        fs::write(all.path().join("secret"), "of another chat").unwrap();
        for other in ["api@ada_home+1", "api@ada_home:2d", "api@bob_home"] {
            fs::create_dir(all.path().join(other)).unwrap();
            fs::write(all.path().join(other).join("file"), other).unwrap();
        }
        fs::write(own.join("sub/mine"), "mine").unwrap();
        symlink("../secret", own.join("link")).unwrap();
        symlink(all.path(), own.join("dir")).unwrap();
        symlink("sub/mine", own.join("inner")).unwrap();
        for (path, is_open) in [
            (own.join("sub/mine"), true),
            (own.join("inner"), true),
            (own.join("link"), false),
            (own.join("dir/secret"), false),
            (own.join("sub"), false),
            (own.join("../secret"), false),
            (all.path().join("secret"), false),
            (all.path().join("api@ada_home+1/file"), true),
            (all.path().join("api@ada_home:2d/file"), false),
            (all.path().join("api@bob_home/file"), false),
            (own.join("../api@bob_home/file"), false),
        ] {
            let opened = open_of_chat(all.path(), &first, &path);
            assert_eq!(opened.is_ok(), is_open, "{}", path.display());
        }
    }
}
