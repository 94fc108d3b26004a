//! Restores a record in which one bit was changed, as far as its hashes prove what it was.
//!
//! A record's hash covers it and the one before it, and the name of a large body is its hash: of all that differ from
//! what is there in one bit, only what was written fits.

use crate::blob;
use crate::commit_thread::to_i64;
use crate::error::JournalError;
use crate::read;
use rondo_core::ports::{ChainHash, HashedFields, Seq};
use rondo_types::SessionId;
use rusqlite::types::Value;
use rusqlite::{Connection, Error, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use std::ops::Range;

/// Bytes of the longest text in which a changed bit is looked for, if nothing was noted of its bits. The time grows with their
/// square: this one takes some seconds.
const SEARCHED_BYTES_MAX: usize = 48 << 10;
/// Bytes after which the state of a hash is kept, so that what comes before is hashed once.
const BLOCK_BYTES: usize = 4096;
/// The widths in bits in which SQLite stores integers.
const INTEGER_BITS: [u32; 6] = [8, 16, 24, 32, 48, 64];

/// The columns of a record's numbers.
const NUMBERS: [&str; 4] = ["version", "epoch", "step", "at_ms"];

/// A record's row, as it is.
struct Row {
    /// The session under whose key it lies.
    owner: i64,
    seq: Seq,
    /// As in [`NUMBERS`].
    numbers: [i64; 4],
    turn: Vec<u8>,
    hash: Vec<u8>,
    body: Option<Vec<u8>>,
    blob: Option<Vec<u8>>,
}

/// Place of damage in a session.
pub(crate) struct DamagedRecord {
    pub(crate) session: SessionId,
    pub(crate) seq: Seq,
    /// The hash of the record before.
    pub(crate) before: ChainHash,
}

/// Restores a record, and returns whether it could.
pub(crate) fn mend(
    connection: &mut Connection,
    place: &DamagedRecord,
) -> Result<bool, JournalError> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if mend_end(&transaction, place)? {
        transaction.commit()?;
        return Ok(true);
    }
    let Some(mut row) = find(&transaction, place)? else {
        return Ok(false);
    };
    let before = place.before;
    let is_mended = mend_body(&transaction, &mut row, before)?
        || mend_hash(&transaction, &row, before)?
        || mend_number(&transaction, &row, before)?
        || mend_text(&transaction, &row, before)?;
    transaction.commit()?;
    Ok(is_mended)
}

/// Returns whether a record's large body is not what was written, and several records hold it: the next one that holds
/// it restores it for all.
pub(crate) fn may_be_written_anew(
    connection: &Connection,
    place: &DamagedRecord,
) -> Result<bool, JournalError> {
    let Some(Row {
        blob: Some(key), ..
    }) = find(connection, place)?
    else {
        return Ok(false);
    };
    let body = blob::bytes(connection, &key)?;
    let is_whole = body.is_some_and(|body| Sha256::digest(body)[..] == key[..]);
    Ok(!is_whole && blob::recurs(connection, &key)?)
}

fn find(connection: &Connection, place: &DamagedRecord) -> Result<Option<Row>, JournalError> {
    let session = read::find(connection, &place.session)?;
    let segments = read::lineage(connection, &session)?;
    let holds = |it: &&read::Segment| it.first <= place.seq.0 && place.seq.0 <= it.last;
    let Some(segment) = segments.iter().find(holds) else {
        return Ok(None);
    };
    // A value of an unexpected type differs in more than a bit.
    let row = connection
        .prepare(
            "SELECT version, epoch, step, at_ms, CAST(turn AS BLOB), CAST(hash AS BLOB),
             CAST(body AS BLOB), CAST(blob AS BLOB) FROM records WHERE session = ?1 AND seq = ?2",
        )?
        .query_row((segment.id, to_i64(place.seq.0)), |row| {
            Ok(Row {
                owner: segment.id,
                seq: place.seq,
                numbers: [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?],
                turn: row.get(4)?,
                hash: row.get(5)?,
                body: row.get(6)?,
                blob: row.get(7)?,
            })
        })
        .optional();
    match row {
        Err(Error::InvalidColumnType(..) | Error::FromSqlConversionFailure(..)) => Ok(None),
        row => Ok(row?),
    }
}

/// Restores where the session ends: its number, if a record has the hash of the last one, or this hash, if only it
/// differs.
fn mend_end(connection: &Connection, place: &DamagedRecord) -> Result<bool, JournalError> {
    let row = read::find(connection, &place.session)?;
    let last = connection
        .prepare("SELECT seq FROM records WHERE session = ?1 AND hash = ?2 AND seq <> ?3")?
        .query_row((row.id, row.head_hash.0, to_i64(row.head.0)), |row| {
            row.get::<_, i64>(0)
        })
        .optional()?;
    if let Some(last) = last {
        let sql = "UPDATE sessions SET head_seq = ?2 WHERE id = ?1";
        return Ok(connection.execute(sql, (row.id, last))? > 0);
    }
    if place.seq.0 != row.head.0 + 1 || !is_one_flip(&place.before.0, &row.head_hash.0) {
        return Ok(false);
    }
    let sql = "UPDATE sessions SET head_hash = ?2 WHERE id = ?1";
    Ok(connection.execute(sql, (row.id, place.before.0))? > 0)
}

/// Restores a large body whose name is known, or the name of one that is whole. Afterwards the row has its body.
fn mend_body(
    connection: &Connection,
    row: &mut Row,
    before: ChainHash,
) -> Result<bool, JournalError> {
    let Some(key) = row.blob.clone() else {
        return Ok(false);
    };
    if let Some(mut body) = blob::bytes(connection, &key)? {
        let noted = blob::noted_bit_sum(connection, &key)?;
        let whole = 0..body.len();
        let is_whole = Sha256::digest(&body)[..] == key[..]
            || match noted {
                Some(sum) => restore_by_sum(&mut body, sum, &key),
                None => restore(&mut body, whole, &key),
            };
        if !is_whole {
            row.body = Some(body);
            return Ok(false);
        }
        row.body = Some(body.clone());
        return put(connection, &key, body);
    }
    for bit in 0..key.len() * 8 {
        let mut other = key.clone();
        flip(&mut other, bit);
        let Some(body) = blob::bytes(connection, &other)? else {
            continue;
        };
        let sha256 = Sha256::digest(&body);
        if sha256[..] == key[..] {
            return put(connection, &key, body);
        }
        if fits(row, before, &body) && sha256[..] == other[..] {
            connection.execute(
                "UPDATE records SET blob = ?3 WHERE session = ?1 AND seq = ?2",
                (row.owner, to_i64(row.seq.0), other),
            )?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn put(connection: &Connection, key: &[u8], body: Vec<u8>) -> Result<bool, JournalError> {
    match (String::from_utf8(body), <[u8; 32]>::try_from(key)) {
        (Ok(body), Ok(key)) => blob::put(connection, key, &body),
        _ => Ok(false),
    }
}

fn fits(row: &Row, before: ChainHash, body: &[u8]) -> bool {
    fields(row, row.numbers, body).is_some_and(|it| chained(&it, before).0[..] == row.hash[..])
}

fn fields<'a>(row: &'a Row, numbers: [i64; 4], body: &'a [u8]) -> Option<HashedFields<'a>> {
    let [version, epoch, step, at_ms] = numbers;
    Some(HashedFields {
        seq: row.seq.0,
        version: u32::try_from(version).ok()?,
        epoch: u64::try_from(epoch).ok()?,
        step: u32::try_from(step).ok()?,
        at_ms: u64::try_from(at_ms).ok()?,
        turn: &row.turn,
        body,
    })
}

fn chained(fields: &HashedFields<'_>, before: ChainHash) -> ChainHash {
    let mut hash = Sha256::new();
    fields.each_part(before, |part| hash.update(part));
    ChainHash(hash.finalize().into())
}

/// Restores the record's own hash.
fn mend_hash(connection: &Connection, row: &Row, before: ChainHash) -> Result<bool, JournalError> {
    let body = row.body.as_deref().unwrap_or_default();
    let hash = fields(row, row.numbers, body).map(|it| chained(&it, before).0.to_vec());
    match hash.filter(|it| is_one_flip(it, &row.hash)) {
        Some(hash) => set(connection, row, "hash", Value::Blob(hash)),
        None => Ok(false),
    }
}

/// Restores a number of the record.
fn mend_number(
    connection: &Connection,
    row: &Row,
    before: ChainHash,
) -> Result<bool, JournalError> {
    let body = row.body.as_deref().unwrap_or_default();
    for (index, name) in NUMBERS.iter().enumerate() {
        for number in row
            .numbers
            .get(index)
            .into_iter()
            .flat_map(|it| neighbours(*it))
        {
            let mut numbers = row.numbers;
            numbers
                .iter_mut()
                .skip(index)
                .take(1)
                .for_each(|it| *it = number);
            let fields = fields(row, numbers, body);
            if fields.is_some_and(|it| chained(&it, before).0[..] == row.hash[..]) {
                return set(connection, row, name, Value::Integer(number));
            }
        }
    }
    Ok(false)
}

/// Restores the turn of the record, or its body if that is in the row.
fn mend_text(connection: &Connection, row: &Row, before: ChainHash) -> Result<bool, JournalError> {
    let body = row.body.as_deref().unwrap_or_default();
    let Some(fields) = fields(row, row.numbers, body) else {
        return Ok(false);
    };
    let mut hashed = Vec::new();
    fields.each_part(before, |part| hashed.extend_from_slice(part));
    // The turn and the body are at the end, each behind its length.
    let body_at = hashed.len() - body.len();
    let turn_end = body_at - 8;
    let turn_at = turn_end - row.turn.len();
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes?.to_vec()).ok();
    if restore(&mut hashed, turn_at..turn_end, &row.hash)
        && let Some(turn) = text(hashed.get(turn_at..turn_end))
    {
        return set(connection, row, "turn", Value::Text(turn));
    }
    let body_end = hashed.len();
    if row.blob.is_none()
        && restore(&mut hashed, body_at..body_end, &row.hash)
        && let Some(body) = text(hashed.get(body_at..))
    {
        return set(connection, row, "body", Value::Text(body));
    }
    Ok(false)
}

fn set(connection: &Connection, row: &Row, name: &str, value: Value) -> Result<bool, JournalError> {
    let sql = format!("UPDATE records SET {name} = ?3 WHERE session = ?1 AND seq = ?2");
    Ok(connection.execute(&sql, (row.owner, to_i64(row.seq.0), value))? > 0)
}

/// Flips the one bit of a range after which all the bytes have a hash; none if no bit does, or too many bytes
/// would have to be tried.
fn restore(bytes: &mut [u8], range: Range<usize>, sha256: &[u8]) -> bool {
    if range.len().saturating_mul(bytes.len()) > SEARCHED_BYTES_MAX * SEARCHED_BYTES_MAX {
        return false;
    }
    let (mut state, mut hashed) = (Sha256::new(), 0);
    for at in range {
        if at >= hashed + BLOCK_BYTES {
            state.update(bytes.get(hashed..at).unwrap_or_default());
            hashed = at;
        }
        for bit in 0..8 {
            flip(bytes, at * 8 + bit);
            let mut hash = state.clone();
            hash.update(bytes.get(hashed..).unwrap_or_default());
            if hash.finalize()[..] == *sha256 {
                return true;
            }
            flip(bytes, at * 8 + bit);
        }
    }
    false
}

/// Flips the bit that the sum of the bits says was changed; not if the bytes do not have their hash then.
fn restore_by_sum(bytes: &mut [u8], bit_sum: i64, sha256: &[u8]) -> bool {
    let Ok(bit) = usize::try_from(blob::bit_sum(bytes) ^ bit_sum) else {
        return false;
    };
    flip(bytes, bit);
    if Sha256::digest(&bytes)[..] == *sha256 {
        return true;
    }
    flip(bytes, bit);
    false
}

fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

fn is_one_flip(one: &[u8], other: &[u8]) -> bool {
    let bits = one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones());
    one.len() == other.len() && bits.sum::<u32>() == 1
}

/// The numbers that differ from this one in a bit, as SQLite stores them.
fn neighbours(number: i64) -> impl Iterator<Item = i64> {
    INTEGER_BITS.into_iter().flat_map(move |width| {
        let unused = 64 - width;
        let is_stored_so = (number << unused) >> unused == number;
        let bits = if is_stored_so { 0..width } else { 0..0 };
        bits.map(move |bit| ((number ^ (1 << bit)) << unused) >> unused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_text_is_found() {
        let text = "A text of some length. ".repeat(3).into_bytes();
        let sha256 = Sha256::digest(&text);
        for bit in 0..text.len() * 8 {
            let mut changed = text.clone();
            flip(&mut changed, bit);
            let whole = 0..changed.len();
            assert!(restore(&mut changed, whole, &sha256));
            assert_eq!(changed, text);
        }
        let mut other = b"another text".to_vec();
        assert!(!restore(&mut other, 0..12, &sha256));
    }

    #[test]
    fn the_sum_of_the_bits_tells_which_one_was_changed() {
        for length in [1, 7, 8, 9, 100] {
            let text: Vec<u8> = (0..length).map(|it: u8| it.wrapping_mul(37)).collect();
            let sha256 = Sha256::digest(&text);
            for bit in 0..text.len() * 8 {
                let mut changed = text.clone();
                flip(&mut changed, bit);
                assert!(restore_by_sum(&mut changed, blob::bit_sum(&text), &sha256));
                assert_eq!(changed, text);
            }
        }
        let mut other = b"another text".to_vec();
        assert!(!restore_by_sum(&mut other, 0, &Sha256::digest(b"text")));
        assert_eq!(other, b"another text");
    }

    #[test]
    fn a_number_is_among_the_neighbours_of_each_of_its_own() {
        for number in [0, 1, 3, 127, 128, 1_764_000_000_000, i64::MAX] {
            for other in neighbours(number) {
                assert!(neighbours(other).any(|it| it == number), "{number} {other}");
            }
        }
        assert!(neighbours(3).any(|it| it == -125));
    }
}
