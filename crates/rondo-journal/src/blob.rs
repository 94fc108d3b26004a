//! Bodies that are too large for a row, kept once however many records hold the same.

use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};

/// Bytes of a body that stay in the record's row.
pub(crate) const INLINE_BYTES_MAX: usize = 16 << 10;

/// Where a body goes: into the row, or under its hash.
pub(crate) struct Placed<'a> {
    pub(crate) body: Option<&'a str>,
    pub(crate) blob: Option<[u8; 32]>,
}

/// Stores a large body and says where it is.
pub(crate) fn place<'a>(connection: &Connection, json: &'a str) -> Result<Placed<'a>, StoreError> {
    if json.len() <= INLINE_BYTES_MAX {
        return Ok(Placed {
            body: Some(json),
            blob: None,
        });
    }
    let sha256: [u8; 32] = Sha256::digest(json).into();
    connection
        .prepare_cached("INSERT OR IGNORE INTO blobs (sha256, body) VALUES (?1, ?2)")?
        .execute((sha256, json))?;
    Ok(Placed {
        body: None,
        blob: Some(sha256),
    })
}

/// Reads a large body; none when it is gone.
pub(crate) fn read(connection: &Connection, sha256: &[u8]) -> Result<Option<String>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT body FROM blobs WHERE sha256 = ?1")?
        .query_row([sha256], |row| row.get(0))
        .optional()?)
}

/// Removes the bodies that no record holds any more.
pub(crate) fn remove_unused(connection: &Connection) -> Result<usize, StoreError> {
    Ok(connection.execute(
        "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM records WHERE blob = sha256)",
        [],
    )?)
}
