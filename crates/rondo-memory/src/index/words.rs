//! The memories that fit the words of a query, the best first.

use super::CANDIDATES_MAX;
use super::terms::Terms;
use crate::error::MemoryError;
use rusqlite::{Connection, params};
use std::collections::HashMap;

/// How much a word in the headings counts, next to one in the text.
const HEADING_WEIGHT: f64 = 0.5;

/// Returns the rows that have words of the query, or words that begin like them, by BM25.
pub(super) fn by_words(
    connection: &Connection,
    folders: &str,
    terms: &Terms,
) -> Result<Vec<i64>, MemoryError> {
    let words = terms.words.iter().map(|it| quoted(it));
    let stems = terms.stems.iter().map(|it| quoted(it) + "*");
    let expressions: Vec<String> = words.chain(stems).collect();
    matching(connection, "words", folders, &expressions)
}

/// Returns the rows that have words of the query within their words, by BM25.
pub(super) fn by_parts(
    connection: &Connection,
    folders: &str,
    terms: &Terms,
) -> Result<Vec<i64>, MemoryError> {
    let expressions: Vec<String> = terms.parts.iter().map(|it| quoted(it)).collect();
    matching(connection, "parts", folders, &expressions)
}

/// Returns the rows that have the shortest parts of the query, which no index finds: the rarer a part, the more it
/// counts.
pub(super) fn by_short_parts(
    connection: &Connection,
    folders: &str,
    terms: &Terms,
) -> Result<Vec<i64>, MemoryError> {
    if terms.short.is_empty() || folders.is_empty() {
        return Ok(Vec::new());
    }
    let within =
        format!("FROM memories m JOIN files f ON f.id = m.file WHERE f.folder IN ({folders})");
    let all: f64 =
        connection.query_row(&format!("SELECT count(*) {within}"), [], |row| row.get(0))?;
    let like = format!("SELECT m.id {within} AND m.text LIKE ?1 ESCAPE '\\'");
    let mut statement = connection.prepare(&like)?;
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for part in &terms.short {
        let pattern = format!("%{}%", escaped(part));
        let rows = statement.query_map([pattern], |row| row.get(0))?;
        let rows = rows.collect::<Result<Vec<i64>, _>>()?;
        let mut found = 0.0;
        rows.iter().for_each(|_| found += 1.0);
        let rarity = (1.0 + (all - found + 0.5) / (found + 0.5)).ln();
        for row in rows {
            *scores.entry(row).or_default() += rarity;
        }
    }
    let mut ranked: Vec<(i64, f64)> = scores.into_iter().collect();
    ranked.sort_by(|(one, high), (other, low)| low.total_cmp(high).then(other.cmp(one)));
    ranked.truncate(CANDIDATES_MAX);
    Ok(ranked.into_iter().map(|(row, _)| row).collect())
}

/// SQLite's `bm25` is lower for rows that fit better.
fn matching(
    connection: &Connection,
    table: &str,
    folders: &str,
    expressions: &[String],
) -> Result<Vec<i64>, MemoryError> {
    if expressions.is_empty() || folders.is_empty() {
        return Ok(Vec::new());
    }
    let select = format!(
        "SELECT m.id FROM {table} JOIN memories m ON m.id = {table}.rowid JOIN files f ON f.id = m.file
         WHERE {table} MATCH ?1 AND f.folder IN ({folders})
         ORDER BY bm25({table}, 1.0, {HEADING_WEIGHT}), m.id DESC LIMIT ?2"
    );
    let candidates = i64::try_from(CANDIDATES_MAX).unwrap_or(i64::MAX);
    let mut statement = connection.prepare(&select)?;
    let rows = statement.query_map(params![expressions.join(" OR "), candidates], |row| {
        row.get(0)
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// In quotes, nothing of a query is an operator of SQLite's search.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

fn escaped(part: &str) -> String {
    part.replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_")
}
