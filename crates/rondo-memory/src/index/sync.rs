//! Brings the tables up to the files: a file whose hash changed is read again, and one that is gone is removed.

use super::Ranked;
use crate::error::MemoryError;
use crate::folder::{FileState, Folder, OpenFolder};
use crate::notes::{self, Memory};
use crate::origin;
use crate::scope::Scope;
use rondo_core::clock::Clock;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// A file that was written this shortly before it was read may be written again without a change of its time, as far as
/// the file system tells time: it is read again the next time.
const UNSETTLED_NS: i64 = 2_000_000_000;

/// A file as the index knows it.
struct IndexedFile {
    id: i64,
    sha256: Vec<u8>,
    state: FileState,
    is_settled: bool,
}

/// Returns the files that were not read, and why.
pub(super) fn refresh(
    connection: &mut Connection,
    folders: &[&Folder],
) -> Result<Vec<String>, MemoryError> {
    let mut notes = Vec::new();
    for folder in folders {
        notes.extend(refresh_folder(connection, folder)?);
    }
    Ok(notes)
}

fn refresh_folder(
    connection: &mut Connection,
    folder: &Folder,
) -> Result<Vec<String>, MemoryError> {
    let Some(open) = folder.open()? else {
        if let Some(id) = folder_id(connection, folder)? {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for file in known_files(&transaction, id)?.into_values() {
                remove(&transaction, file.id)?;
            }
            transaction.execute("DELETE FROM folders WHERE id = ?1", [id])?;
            transaction.commit()?;
        }
        return Ok(Vec::new());
    };
    let files = open.files()?;
    let known = match folder_id(connection, folder)? {
        Some(id) => known_files(connection, id)?,
        None => BTreeMap::new(),
    };
    let names: BTreeSet<&str> = files.files.iter().map(|it| it.name.as_str()).collect();
    let is_current = |file: &FileState| {
        known
            .get(&file.name)
            .is_some_and(|it| it.is_settled && it.state == *file)
    };
    let is_unchanged = files.files.iter().all(is_current)
        && known.keys().all(|name| names.contains(name.as_str()));
    let mut notes = files.notes;
    if !is_unchanged {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let id = make_folder(&transaction, folder)?;
        // Another process may have been faster.
        let known = known_files(&transaction, id)?;
        for (name, file) in &known {
            if !names.contains(name.as_str()) {
                remove(&transaction, file.id)?;
            }
        }
        for file in files.files {
            let read = refresh_file(
                &transaction,
                &open,
                id,
                folder.scope,
                &file,
                known.get(&file.name),
            );
            match read {
                Err(MemoryError::Index(err)) => return Err(err.into()),
                Err(err) => notes.push(err.line()),
                Ok(()) => {}
            }
        }
        transaction.execute(
            "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.content = vectors.content)",
            [],
        )?;
        transaction.commit()?;
    }
    Ok(notes)
}

fn refresh_file(
    transaction: &Transaction<'_>,
    open: &OpenFolder,
    folder: i64,
    scope: Scope,
    file: &FileState,
    known: Option<&IndexedFile>,
) -> Result<(), MemoryError> {
    if known.is_some_and(|it| it.is_settled && it.state == *file) {
        return Ok(());
    }
    let bytes = open.read(&file.name)?.unwrap_or_default();
    let sha256 = Sha256::digest(&bytes).to_vec();
    let now = i64::try_from(Clock::system().now().0).unwrap_or(i64::MAX);
    let is_settled = file.modified_ns < now.saturating_mul(1_000_000).saturating_sub(UNSETTLED_NS);
    let inode = file.inode.cast_signed();
    let size = i64::try_from(file.bytes).unwrap_or(i64::MAX);
    if let Some(known) = known.filter(|it| it.sha256 == sha256) {
        transaction.execute(
            "UPDATE files SET bytes = ?2, modified_ns = ?3, inode = ?4, is_settled = ?5 WHERE id = ?1",
            params![known.id, size, file.modified_ns, inode, is_settled],
        )?;
        return Ok(());
    }
    if let Some(known) = known {
        remove(transaction, known.id)?;
    }
    let id: i64 = transaction.query_row(
        "INSERT INTO files (folder, name, sha256, bytes, modified_ns, inode, is_settled)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
        params![
            folder,
            file.name,
            sha256,
            size,
            file.modified_ns,
            inode,
            is_settled
        ],
        |row| row.get(0),
    )?;
    for memory in notes::parse(scope, &file.name, &String::from_utf8_lossy(&bytes)) {
        add(transaction, id, &memory)?;
    }
    Ok(())
}

fn add(transaction: &Transaction<'_>, file: i64, memory: &Memory) -> Result<(), MemoryError> {
    let content = Sha256::digest(&memory.text).to_vec();
    let line = i64::try_from(memory.line).unwrap_or(i64::MAX);
    let id: i64 = transaction
        .prepare_cached(
            "INSERT INTO memories (file, memory, line, heading, text, origin, content)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
        )?
        .query_row(
            params![
                file,
                memory.id,
                line,
                memory.heading,
                memory.text,
                memory.origin.comment(),
                content
            ],
            |row| row.get(0),
        )?;
    for table in ["words", "parts"] {
        transaction
            .prepare_cached(&format!(
                "INSERT INTO {table} (rowid, text, heading) VALUES (?1, ?2, ?3)"
            ))?
            .execute(params![id, memory.text, memory.heading])?;
    }
    Ok(())
}

fn remove(transaction: &Transaction<'_>, file: i64) -> Result<(), MemoryError> {
    for table in ["words", "parts"] {
        let delete =
            format!("DELETE FROM {table} WHERE rowid IN (SELECT id FROM memories WHERE file = ?1)");
        transaction.execute(&delete, [file])?;
    }
    transaction.execute("DELETE FROM memories WHERE file = ?1", [file])?;
    transaction.execute("DELETE FROM files WHERE id = ?1", [file])?;
    Ok(())
}

fn known_files(
    connection: &Connection,
    folder: i64,
) -> Result<BTreeMap<String, IndexedFile>, MemoryError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, sha256, bytes, modified_ns, inode, is_settled FROM files WHERE folder = ?1",
    )?;
    let rows = statement.query_map([folder], |row| {
        let name: String = row.get(1)?;
        let state = FileState {
            name: name.clone(),
            bytes: row.get::<_, i64>(3)?.unsigned_abs(),
            modified_ns: row.get(4)?,
            inode: row.get::<_, i64>(5)?.cast_unsigned(),
        };
        let known = IndexedFile {
            id: row.get(0)?,
            sha256: row.get(2)?,
            state,
            is_settled: row.get(6)?,
        };
        Ok((name, known))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn folder_id(connection: &Connection, folder: &Folder) -> Result<Option<i64>, MemoryError> {
    let path = folder.path();
    let id = "SELECT id FROM folders WHERE path = ?1 AND scope = ?2";
    let found = connection.query_row(
        id,
        params![path.to_string_lossy(), folder.scope.as_str()],
        |row| row.get(0),
    );
    Ok(found.optional()?)
}

fn make_folder(transaction: &Transaction<'_>, folder: &Folder) -> Result<i64, MemoryError> {
    if let Some(id) = folder_id(transaction, folder)? {
        return Ok(id);
    }
    let id = transaction.query_row(
        "INSERT INTO folders (path, scope) VALUES (?1, ?2) RETURNING id",
        params![folder.path().to_string_lossy(), folder.scope.as_str()],
        |row| row.get(0),
    )?;
    Ok(id)
}

/// Returns the ids of the folders that the index knows, as a list for SQL.
pub(super) fn folder_ids(
    connection: &Connection,
    folders: &[&Folder],
) -> Result<String, MemoryError> {
    let mut ids = Vec::new();
    for folder in folders {
        ids.extend(folder_id(connection, folder)?.map(|id| id.to_string()));
    }
    Ok(ids.join(","))
}

/// Returns the memories of these rows. One that is in several files counts once.
pub(super) fn memories(
    connection: &Connection,
    ranked: &[(i64, f64)],
    limit: usize,
) -> Result<Vec<Ranked>, MemoryError> {
    let mut found: Vec<Ranked> = Vec::new();
    let mut statement = connection.prepare_cached(
        "SELECT m.memory, d.scope, f.name, m.line, m.heading, m.text, m.origin
         FROM memories m JOIN files f ON f.id = m.file JOIN folders d ON d.id = f.folder WHERE m.id = ?1",
    )?;
    for (id, score) in ranked {
        if found.len() >= limit {
            break;
        }
        let memory = statement.query_row([id], |row| {
            let scope: String = row.get(1)?;
            let line: i64 = row.get(3)?;
            let comment: String = row.get(6)?;
            Ok(Memory {
                id: row.get(0)?,
                scope: scope.parse().unwrap_or(Scope::Project),
                file: row.get(2)?,
                line: usize::try_from(line).unwrap_or_default(),
                heading: row.get(4)?,
                text: row.get(5)?,
                origin: origin::split(&comment).1,
                lines: 0..0,
            })
        })?;
        if found.iter().all(|it| it.memory.id != memory.id) {
            let score = *score;
            found.push(Ranked { memory, score });
        }
    }
    Ok(found)
}
