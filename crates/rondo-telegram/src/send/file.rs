//! Files that are sent: reading them, and what is said of those that are not.

use bytes::Bytes;
use rondo_hub::channel::OutgoingFile;
use std::io::Read as _;

/// The bounds of Telegram on files and on photos, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 50 << 20;
pub(super) const PHOTO_BYTES_MAX: usize = 10 << 20;

/// Reads a file off the async threads.
///
/// # Errors
/// Message for the chat.
pub(super) async fn read(file: &OutgoingFile) -> Result<Bytes, String> {
    let attached = file.clone();
    let read = tokio::task::spawn_blocking(move || read_attached(&attached)).await;
    let read = read.unwrap_or_else(|_| Err("it cannot be read".to_owned()));
    read.map_err(|reason| format!("The file `{}` was not sent: {reason}.", file.name))
}

fn read_attached(file: &OutgoingFile) -> Result<Bytes, String> {
    let opened = file.open().map_err(|_| "it no longer exists")?;
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX.saturating_add(1);
    let count = opened.take(limit).read_to_end(&mut bytes);
    match count.map(|count| count as u64) {
        Ok(0) => Err("it is empty".to_owned()),
        Ok(count) if count > FILE_BYTES_MAX => {
            let max = FILE_BYTES_MAX >> 20;
            Err(format!("Telegram takes files of at most {max} MB"))
        }
        Ok(_) => Ok(bytes.into()),
        Err(_) => Err("it cannot be read".to_owned()),
    }
}
