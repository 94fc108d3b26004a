//! Vectors of texts, and the nearest to that of a query.
//!
//! Up to a bound every vector is compared as it was made, read from SQLite as it comes: 50,000 of 768 numbers take 0.15
//! s. An approximate index would be faster and needs upkeep, and there are hardly ever more. Beyond the bound the vectors
//! are held in memory with a byte for each number, and the best of them are compared again as they were made.

use super::CANDIDATES_MAX;
use crate::error::MemoryError;
use rusqlite::{Connection, Row, TransactionBehavior, params};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The bound on vectors that are compared one by one as they were made.
pub const VECTORS_EXACT_MAX: usize = 100_000;
/// The bound on vectors that take part in a search at all; of more, the latest do.
pub const VECTOR_ROWS_MAX: usize = 1_000_000;
/// How many of the best by bytes are compared again.
const RESCORED_MAX: usize = 4 * CANDIDATES_MAX;
/// The largest number in a byte.
const LEVELS: f32 = 127.0;

/// A text without a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// SHA-256 of the text.
    pub(crate) content: Vec<u8>,
    pub(crate) text: String,
}

/// Vectors by SHA-256 of their texts.
pub(crate) type Vectors = Vec<(Vec<u8>, Vec<f32>)>;

/// Vectors in memory, a byte for each number.
#[derive(Debug)]
pub(super) struct Quantised {
    /// Source of the matrix: model, dimension, folders, and SQLite's count of changes.
    key: (String, usize, String, i64, i64),
    rows: Vec<i64>,
    /// Value of one step of each row's bytes.
    steps: Vec<f32>,
    bytes: Vec<i8>,
}

pub(super) fn pending(
    connection: &Connection,
    folders: &str,
    model: &str,
    max: usize,
) -> Result<Vec<Pending>, MemoryError> {
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let select = format!(
        "SELECT m.content, min(m.text) FROM memories m JOIN files f ON f.id = m.file
         WHERE f.folder IN ({folders})
         AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.content = m.content AND v.model = ?1)
         GROUP BY m.content ORDER BY max(m.id) DESC LIMIT ?2"
    );
    let mut statement = connection.prepare(&select)?;
    let rows = statement.query_map(params![model, max], |row| {
        Ok(Pending {
            content: row.get(0)?,
            text: row.get(1)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn keep(
    connection: &mut Connection,
    model: &str,
    vectors: &Vectors,
) -> Result<(), MemoryError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (content, vector) in vectors {
        let Some(vector) = normalised(vector) else {
            continue;
        };
        let dimension = i64::try_from(vector.len()).unwrap_or(i64::MAX);
        let bytes: Vec<u8> = vector.iter().flat_map(|it| it.to_le_bytes()).collect();
        transaction.execute(
            "INSERT OR REPLACE INTO vectors (content, model, dimension, vector) VALUES (?1, ?2, ?3, ?4)",
            params![content, model, dimension, bytes],
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// Returns the rows whose vectors point most in the direction of `query`, the nearest first. `bounds` are those on
/// vectors that are compared as they were made, and on vectors at all.
pub(super) fn nearest(
    connection: &Connection,
    quantised: &mut Option<Quantised>,
    folders: &str,
    model: &str,
    query: &[f32],
    bounds: (usize, usize),
) -> Result<Vec<i64>, MemoryError> {
    let Some(query) = normalised(query).filter(|_| !folders.is_empty()) else {
        return Ok(Vec::new());
    };
    let (exact_max, rows_max) = bounds;
    let dimension = i64::try_from(query.len()).unwrap_or(i64::MAX);
    let within = format!(
        "FROM vectors v JOIN memories m ON m.content = v.content JOIN files f ON f.id = m.file
         WHERE v.model = ?1 AND v.dimension = ?2 AND f.folder IN ({folders})"
    );
    let count: i64 = connection.query_row(
        &format!("SELECT count(*) {within}"),
        params![model, dimension],
        |row| row.get(0),
    )?;
    let select = format!("SELECT m.id, v.vector {within}");
    if usize::try_from(count).unwrap_or(usize::MAX) <= exact_max {
        let mut best = Best::new(CANDIDATES_MAX);
        let mut statement = connection.prepare(&select)?;
        let mut rows = statement.query(params![model, dimension])?;
        while let Some(row) = rows.next()? {
            best.offer(dot(&query, blob(row, 1)?), row.get(0)?);
        }
        return Ok(best.rows());
    }
    let limited = format!("{select} ORDER BY m.id DESC LIMIT {rows_max}");
    let held = hold(connection, quantised, (folders, model), &query, &limited)?;
    let best = held.nearest(&query, RESCORED_MAX);
    rescored(connection, model, &query, &best)
}

/// Reads the vectors into memory, unless they are there.
fn hold<'a>(
    connection: &Connection,
    quantised: &'a mut Option<Quantised>,
    (folders, model): (&str, &str),
    query: &[f32],
    select: &str,
) -> Result<&'a Quantised, MemoryError> {
    let version: i64 = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
    let changes: i64 = connection.query_row("SELECT total_changes()", [], |row| row.get(0))?;
    let key = (
        model.to_owned(),
        query.len(),
        folders.to_owned(),
        version,
        changes,
    );
    if quantised.as_ref().is_none_or(|it| it.key != key) {
        let dimension = i64::try_from(query.len()).unwrap_or(i64::MAX);
        let mut made = Quantised {
            key,
            rows: Vec::new(),
            steps: Vec::new(),
            bytes: Vec::new(),
        };
        let mut statement = connection.prepare(select)?;
        let mut rows = statement.query(params![model, dimension])?;
        while let Some(row) = rows.next()? {
            made.add(row.get(0)?, blob(row, 1)?);
        }
        *quantised = Some(made);
    }
    quantised.as_ref().ok_or(MemoryError::Ended)
}

fn rescored(
    connection: &Connection,
    model: &str,
    query: &[f32],
    rows: &[i64],
) -> Result<Vec<i64>, MemoryError> {
    let mut best = Best::new(CANDIDATES_MAX);
    let mut statement = connection.prepare(
        "SELECT v.vector FROM memories m JOIN vectors v ON v.content = m.content WHERE m.id = ?1 AND v.model = ?2",
    )?;
    for row in rows {
        let mut found = statement.query(params![row, model])?;
        if let Some(found) = found.next()? {
            best.offer(dot(query, blob(found, 0)?), *row);
        }
    }
    Ok(best.rows())
}

impl Quantised {
    fn add(&mut self, row: i64, vector: &[u8]) {
        let numbers = || numbers(vector);
        let largest = numbers().fold(0.0_f32, |most, it| most.max(it.abs()));
        let step = largest / LEVELS;
        self.rows.push(row);
        self.steps.push(step);
        self.bytes.extend(numbers().map(|it| byte(it, step)));
    }

    fn nearest(&self, query: &[f32], count: usize) -> Vec<i64> {
        let largest = query.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        let step = largest / LEVELS;
        let query: Vec<i8> = query.iter().map(|it| byte(*it, step)).collect();
        let mut best = Best::new(count);
        let vectors = self.bytes.chunks_exact(query.len().max(1));
        for ((row, step), vector) in self.rows.iter().zip(&self.steps).zip(vectors) {
            let products = query
                .iter()
                .zip(vector)
                .map(|(a, b)| i32::from(*a) * i32::from(*b));
            #[expect(
                clippy::cast_precision_loss,
                reason = "the order of near equals does not matter"
            )]
            let sum = products.sum::<i32>() as f32;
            best.offer(sum * step, *row);
        }
        best.rows()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "it is between -127 and 127"
)]
fn byte(number: f32, step: f32) -> i8 {
    if step == 0.0 {
        0
    } else {
        (number / step).round().clamp(-LEVELS, LEVELS) as i8
    }
}

fn blob<'a>(row: &'a Row<'_>, at: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(row.get_ref(at)?.as_blob()?)
}

fn numbers(vector: &[u8]) -> impl Iterator<Item = f32> {
    let chunks = vector.chunks_exact(4);
    chunks.filter_map(|it| Some(f32::from_le_bytes(it.try_into().ok()?)))
}

fn dot(query: &[f32], vector: &[u8]) -> f32 {
    query.iter().zip(numbers(vector)).map(|(a, b)| a * b).sum()
}

/// Returns the vector with length 1; `None` for one that has no direction.
fn normalised(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
    let is_one = length.is_finite() && length > f32::EPSILON;
    is_one.then(|| vector.iter().map(|it| it / length).collect())
}

/// The rows with the highest scores.
struct Best {
    max: usize,
    /// The worst on top.
    heap: BinaryHeap<Scored>,
}

struct Scored(f32, i64);

impl Best {
    fn new(max: usize) -> Self {
        Self {
            max,
            heap: BinaryHeap::with_capacity(max + 1),
        }
    }

    fn offer(&mut self, score: f32, row: i64) {
        self.heap.push(Scored(score, row));
        if self.heap.len() > self.max {
            self.heap.pop();
        }
    }

    fn rows(self) -> Vec<i64> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|it| it.1)
            .collect()
    }
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scored {}

#[cfg(test)]
mod tests;
