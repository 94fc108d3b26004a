//! One record as every engine stores it, with its hash chained to the one before.

use super::journal::{ChainHash, Record, RecordBody, Seq};
use rondo_types::{TimeMs, TurnId};
use sha2::{Digest as _, Sha256};

/// The version of the records that this program writes. It reads this one and all older ones.
///
/// 2 has the cells of a person's Python session. 3 has parked turns and the answers to their questions. 4 has each question
/// before it is asked.
pub const RECORD_VERSION: u32 = 4;

/// The first version whose unknown kinds are passed over whatever version reads them: later writers of the same
/// version may add kinds that need not be understood.
const TOLERANT_FROM: u32 = 3;

/// The fact of a record, as it was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// One that this version knows.
    Known(Box<RecordBody>),
    /// One that a later version wrote; it is kept and counted, and says nothing here.
    Unknown {
        /// Kind of the record.
        kind: String,
    },
}

/// One record as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its place, from 1.
    pub seq: Seq,
    /// The version of the writer's records.
    pub version: u32,
    /// Which owner of the session wrote it; a later owner has a higher one.
    pub epoch: u64,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The step it belongs to; 0 before the first.
    pub step: u32,
    /// When it was written.
    pub at: TimeMs,
    /// The body as it was written: JSON, one object with `kind`.
    pub json: String,
    /// The hash of this record and all before it.
    pub hash: ChainHash,
}

/// The fields of a record that its hash covers.
#[derive(Debug, Clone, Copy)]
pub struct HashedFields<'a> {
    /// Its place, from 1.
    pub seq: u64,
    /// The version of the writer's records.
    pub version: u32,
    /// The epoch of the owner that wrote it.
    pub epoch: u64,
    /// The step it belongs to.
    pub step: u32,
    /// When it was written.
    pub at_ms: u64,
    /// The id of the turn it belongs to.
    pub turn: &'a [u8],
    /// The body as it was written.
    pub body: &'a [u8],
}

impl HashedFields<'_> {
    /// Passes the bytes that are hashed to `take`, in their order.
    pub fn each_part(&self, before: ChainHash, mut take: impl FnMut(&[u8])) {
        take(&before.0);
        take(&self.seq.to_le_bytes());
        take(&self.version.to_le_bytes());
        take(&self.epoch.to_le_bytes());
        take(&self.step.to_le_bytes());
        take(&self.at_ms.to_le_bytes());
        for text in [self.turn, self.body] {
            take(&(text.len() as u64).to_le_bytes());
            take(text);
        }
    }
}

impl Entry {
    /// Makes the entry that follows `before`.
    ///
    /// # Errors
    /// When the body cannot be written as JSON.
    pub fn following(
        before: (Seq, ChainHash),
        epoch: u64,
        record: &Record,
    ) -> Result<Self, serde_json::Error> {
        let mut entry = Self {
            seq: Seq(before.0.0 + 1),
            version: RECORD_VERSION,
            epoch,
            turn: record.turn.clone(),
            step: record.step,
            // A later time could not be kept, and would be another one than is hashed.
            at: TimeMs(record.at_ms.0.min(i64::MAX.unsigned_abs())),
            json: serde_json::to_string(&record.body)?,
            hash: ChainHash::GENESIS,
        };
        entry.hash = entry.chained(before.1);
        Ok(entry)
    }

    /// Returns the hash that this record must have behind one with `before`.
    ///
    /// Over: the hash before (32 bytes); sequence number (8 bytes, little-endian like the rest),
    /// version (4), epoch (8), step (4), time in ms (8); the turn's id and the body, each behind
    /// its length in bytes (8).
    #[must_use]
    pub fn chained(&self, before: ChainHash) -> ChainHash {
        let mut hash = Sha256::new();
        let fields = HashedFields {
            seq: self.seq.0,
            version: self.version,
            epoch: self.epoch,
            step: self.step,
            at_ms: self.at.0,
            turn: self.turn.as_str().as_bytes(),
            body: self.json.as_bytes(),
        };
        fields.each_part(before, |part| hash.update(part));
        ChainHash(hash.finalize().into())
    }

    /// Reads the body.
    ///
    /// # Errors
    /// When it is not what its kind should be.
    pub fn body(&self) -> Result<Body, serde_json::Error> {
        match serde_json::from_str(&self.json) {
            Ok(body) => Ok(Body::Known(Box::new(body))),
            Err(_) if self.may_be_unknown() => Ok(Body::Unknown { kind: self.kind() }),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a body that cannot be read comes from a later writer: any of a later version, and from
    /// [`TOLERANT_FROM`] on one of a kind that is not known here.
    fn may_be_unknown(&self) -> bool {
        let is_known = || RecordBody::KINDS.contains(&self.kind().as_str());
        self.version > RECORD_VERSION || (self.version >= TOLERANT_FROM && !is_known())
    }

    /// Returns the record; `None` if this version does not know its kind or cannot read it.
    #[must_use]
    pub fn into_record(self) -> Option<Record> {
        let body = self.body().ok()?;
        self.with_body(body)
    }

    /// Returns the record with its body, which was read before; `None` if this version does not
    /// know it.
    #[must_use]
    pub fn with_body(self, body: Body) -> Option<Record> {
        let Body::Known(body) = body else {
            return None;
        };
        Some(Record {
            turn: self.turn,
            step: self.step,
            at_ms: self.at,
            body: *body,
        })
    }

    /// Returns the body's kind; empty when it has none.
    #[must_use]
    pub fn kind(&self) -> String {
        if let Some(kind) = leading_kind(&self.json) {
            return kind.to_owned();
        }
        #[derive(serde::Deserialize)]
        struct Kind {
            kind: String,
        }
        serde_json::from_str::<Kind>(&self.json).map_or_else(|_| String::new(), |it| it.kind)
    }
}

/// Finds the kind if it is first, as it does in all that is written here: most who ask want no
/// more of a long body.
fn leading_kind(json: &str) -> Option<&str> {
    let (kind, _) = json.strip_prefix(r#"{"kind":""#)?.split_once('"')?;
    (!kind.contains('\\')).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_found_wherever_it_stands() {
        let of = |json: &str| {
            let entry = Entry {
                seq: Seq(1),
                version: RECORD_VERSION,
                epoch: 1,
                turn: TurnId::new("t"),
                step: 0,
                at: TimeMs(1),
                json: json.to_owned(),
                hash: ChainHash::GENESIS,
            };
            entry.kind()
        };
        assert_eq!(of(r#"{"kind":"final","text":"\"kind\":\"x\""}"#), "final");
        assert_eq!(of(r#"{"text":"a","kind":"final"}"#), "final");
        assert_eq!(of(r#"{ "kind": "a\"b" }"#), "a\"b");
        assert_eq!(of(r#"{"kind":"a\"b"}"#), "a\"b");
        assert_eq!(of(r#"{"kind":7}"#), "");
    }
}
