//! Bodies that are too large for a row, kept once however many records hold the same.

use crate::error::JournalError;
use rusqlite::types::{FromSql as _, FromSqlResult};
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};

/// Bytes of a body that stay in the record's row.
pub(crate) const INLINE_BYTES_MAX: usize = 16 << 10;

/// Location of a body: in the row, or under its hash.
pub(crate) struct BodyPlacement<'a> {
    pub(crate) body: Option<&'a str>,
    pub(crate) blob: Option<[u8; 32]>,
}

/// Stores a large body and says where it is. If it is stored already, it is compared: a copy that the disk has
/// changed is replaced, for all records that hold it.
pub(crate) fn place<'a>(
    connection: &Connection,
    json: &'a str,
) -> Result<BodyPlacement<'a>, JournalError> {
    if json.len() <= INLINE_BYTES_MAX {
        return Ok(BodyPlacement {
            body: Some(json),
            blob: None,
        });
    }
    let sha256: [u8; 32] = Sha256::digest(json).into();
    put(connection, sha256, json)?;
    Ok(BodyPlacement {
        body: None,
        blob: Some(sha256),
    })
}

/// Stores a large body under its hash, in the place of any other; returns whether it was not there, or without its sum.
pub(crate) fn put(
    connection: &Connection,
    sha256: [u8; 32],
    json: &str,
) -> Result<bool, JournalError> {
    let written = connection
        .prepare_cached(
            "INSERT INTO blobs (sha256, body, bit_sum) VALUES (?1, ?2, ?3) ON CONFLICT (sha256) DO UPDATE
             SET body = excluded.body, bit_sum = excluded.bit_sum
             WHERE body IS NOT excluded.body OR bit_sum IS NOT excluded.bit_sum",
        )?
        .execute((sha256, json, bit_sum(json.as_bytes())))?;
    Ok(written > 0)
}

/// Reads a large body, which may be no text any more; none when it is gone.
pub(crate) fn read(
    connection: &Connection,
    sha256: &[u8],
) -> Result<Option<FromSqlResult<String>>, JournalError> {
    Ok(connection
        .prepare_cached("SELECT body FROM blobs WHERE sha256 = ?1")?
        .query_row([sha256], |row| Ok(String::column_result(row.get_ref(0)?)))
        .optional()?)
}

/// Reads the bytes of a large body, whatever they are; none when it is gone.
pub(crate) fn bytes(
    connection: &Connection,
    sha256: &[u8],
) -> Result<Option<Vec<u8>>, JournalError> {
    Ok(connection
        .prepare_cached("SELECT CAST(body AS BLOB) FROM blobs WHERE sha256 = ?1")?
        .query_row([sha256], |row| row.get(0))
        .optional()?)
}

/// Returns the stored sum of a large body's bits; none if an earlier version wrote it.
pub(crate) fn noted_bit_sum(
    connection: &Connection,
    sha256: &[u8],
) -> Result<Option<i64>, JournalError> {
    let sum = connection
        .prepare_cached("SELECT CAST(bit_sum AS INTEGER) FROM blobs WHERE sha256 = ?1")?
        .query_row([sha256], |row| row.get::<_, Option<i64>>(0))
        .optional()?;
    Ok(sum.flatten())
}

/// Returns the numbers of all bits that are set, combined by exclusive or. If one bit is changed, this is changed by the
/// number of that bit.
pub(crate) fn bit_sum(bytes: &[u8]) -> i64 {
    let (mut words, mut all) = (0, 0);
    for (number, chunk) in (0..).zip(bytes.chunks(8)) {
        let word = chunk
            .iter()
            .rev()
            .fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
        if word.count_ones() % 2 == 1 {
            words ^= number;
        }
        all ^= word;
    }
    let within = (0..64).filter(|bit| all >> bit & 1 == 1);
    words << 6 ^ within.fold(0, |sum, bit| sum ^ bit)
}

/// Returns whether a body that the disk has changed may be written again: several records hold it, so it was written
/// more than once.
pub(crate) fn recurs(connection: &Connection, sha256: &[u8]) -> Result<bool, JournalError> {
    let count = "SELECT count(*) FROM (SELECT 1 FROM records WHERE blob = ?1 LIMIT 2)";
    let count: u32 = connection.query_row(count, [sha256], |row| row.get(0))?;
    Ok(count > 1)
}

/// Removes the bodies that no record holds any more.
pub(crate) fn remove_unused(connection: &Connection) -> Result<usize, JournalError> {
    Ok(connection.execute(
        "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM records WHERE blob = sha256)",
        [],
    )?)
}
