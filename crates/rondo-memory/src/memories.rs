//! The memories of a user, a project and a chat: saved, listed and forgotten.

use crate::calendar;
use crate::error::MemoryError;
use crate::folder::{Folder, MAIN_FILE, OpenFolder};
use crate::index::Index;
use crate::notes::{self, Memory};
use crate::origin::Origin;
use crate::scope::Scope;
use crate::start;
use data_encoding::HEXLOWER;
use rondo_core::ports::Embedder;
use rondo_core::redact::Secrets;
use rondo_types::{ChangedFile, FileVersion, SessionId};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The directory of the user's memories below Rondo's data, and of a project's below its `.rondo`.
const FOLDER: &str = "memory";
/// The directory of a project's own configuration.
const PROJECT_FOLDER: &str = ".rondo";
/// The directory of the chats' memories, below the user's.
const CHATS: &str = "chats";
/// The longest id of a session that is the name of its directory; of a longer one, its hash is.
const CHAT_NAME_BYTES_MAX: usize = 128;
/// The shortest prefix of an id that names a memory.
const ID_PREFIX_MIN: usize = 4;

/// Locations of memories, and settings of their search.
#[derive(Clone, Default)]
pub struct Options {
    /// Rondo's data directory; the user's and the chats' memories are below it. `None` leaves both out.
    pub data: Option<PathBuf>,
    /// The root of the project. `None` leaves its memories out.
    pub project: Option<PathBuf>,
    /// The session whose chat it is.
    pub session: Option<SessionId>,
    /// The file of the index; it is made again if it is missing or damaged. `None` keeps it in memory.
    pub index: Option<PathBuf>,
    /// Values that are redacted from what is saved, and from what is sent to be embedded.
    pub secrets: Secrets,
    /// Makes vectors of texts; `None` searches by words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// The memories of a user, a project and a chat. Clones share the index.
///
/// Every function that is not `async` blocks for the disk.
#[derive(Clone)]
pub struct Memories {
    /// The widest first.
    folders: Arc<[Folder]>,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) secrets: Secrets,
}

/// A memory to save.
#[derive(Debug, Clone)]
pub struct NewMemory {
    /// Text of the memory.
    pub text: String,
    /// Whose it is.
    pub scope: Scope,
    /// Origin of the memory.
    pub origin: Origin,
}

/// Result of saving.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The memory.
    pub memory: Memory,
    /// File of the memory.
    pub path: PathBuf,
    /// Set if it did not exist before.
    pub is_new: bool,
    /// The change of the file; `None` if it is not new.
    pub change: Option<ChangedFile>,
}

/// All memories.
#[derive(Debug, Default)]
pub struct Listing {
    /// The memories: the user's first, of each scope those of `MEMORY.md` first and then the latest notes.
    pub memories: Vec<Memory>,
    /// Files that were not read, with reasons.
    pub notes: Vec<String>,
}

impl Memories {
    /// Creates it for these directories. Nothing is opened yet, and nothing made.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let mut folders = Vec::new();
        let mut add = |scope, base: &Path, below: &[&str]| {
            folders.push(Folder::new(scope, base.to_owned(), below));
        };
        if let Some(data) = &options.data {
            add(Scope::User, data, &[FOLDER]);
            if let Some(session) = &options.session {
                add(Scope::Chat, data, &[FOLDER, CHATS, &chat_name(session)]);
            }
        }
        if let Some(project) = &options.project {
            add(Scope::Project, project, &[PROJECT_FOLDER, FOLDER]);
        }
        folders.sort_by_key(|it| it.scope);
        Self {
            folders: folders.into(),
            index: Arc::new(Mutex::new(Index::at(options.index))),
            embedder: options.embedder,
            secrets: options.secrets,
        }
    }

    /// Returns the scopes that there are.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.folders.iter().map(|it| it.scope)
    }

    /// Saves a memory: at the end of `MEMORY.md`, or of the note of the day. A memory that says the same as another one
    /// of its scope is not saved again, nor is one whose call was done before.
    ///
    /// A note of the day takes what belongs to a chat, what comes from a turn that has read text from outside, and what
    /// `MEMORY.md` has no room for within the bounds of what a session is shown when it begins. On return it is on the
    /// disk. Processes that save at once wait for one another.
    ///
    /// # Errors
    /// When the text is empty or too long, a link is in the way, or the disk fails.
    pub fn save(&self, new: &NewMemory) -> Result<Saved, MemoryError> {
        let text = notes::cleaned(&self.secrets.text(new.text.clone()))?;
        let folder = self.folder(new.scope)?.lock()?;
        if let Some(known) = known(&folder, new.scope, &text, new.origin.call.as_deref())? {
            let path = folder.path_of(&known.file);
            return Ok(Saved {
                memory: known,
                path,
                is_new: false,
                change: None,
            });
        }
        let (file, before, after) = place(&folder, &text, new)?;
        folder.write(&file, &after)?;
        let saved = notes::parse(new.scope, &file, &after).pop();
        let memory = saved.ok_or(MemoryError::Empty)?;
        let path = folder.path_of(&file);
        let change = ChangedFile {
            path: path.display().to_string(),
            before: version(&before),
            after: version(&after),
        };
        Ok(Saved {
            memory,
            path,
            is_new: true,
            change: Some(change),
        })
    }

    /// Finds the memory that the call with this hash saved.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn saved_by(&self, scope: Scope, call: &str) -> Result<Option<Saved>, MemoryError> {
        let Some(folder) = self.folder(scope)?.open()? else {
            return Ok(None);
        };
        let found = known_call(&folder, scope, call)?;
        Ok(found.map(|memory| Saved {
            path: folder.path_of(&memory.file),
            memory,
            is_new: true,
            change: None,
        }))
    }

    /// Returns all memories, read from their files.
    ///
    /// # Errors
    /// When a directory of memories is a link, or the disk fails.
    pub fn list(&self) -> Result<Listing, MemoryError> {
        let mut listing = Listing::default();
        for folder in self.folders.iter() {
            let Some(open) = folder.open()? else {
                continue;
            };
            let files = open.files()?;
            listing.notes.extend(files.notes);
            for file in files.files {
                match open.read(&file.name) {
                    Ok(bytes) => {
                        let content = bytes.unwrap_or_default();
                        let content = String::from_utf8_lossy(&content);
                        let found = notes::parse(folder.scope, &file.name, &content);
                        listing.memories.extend(found);
                    }
                    Err(err) => listing.notes.push(err.line()),
                }
            }
        }
        Ok(listing)
    }

    /// Returns the memory with an id, or with the only id that begins so.
    ///
    /// # Errors
    /// When there is none, or there are several.
    pub fn find(&self, id: &str) -> Result<Memory, MemoryError> {
        let unknown = || MemoryError::Unknown { id: id.to_owned() };
        if id.len() < ID_PREFIX_MIN {
            return Err(unknown());
        }
        let mut found = self.list()?.memories;
        found.retain(|it| it.id.starts_with(&id.to_ascii_lowercase()));
        // A text may be in two files.
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
        match found.len() {
            0 => Err(unknown()),
            1 => found.pop().ok_or_else(unknown),
            count => Err(MemoryError::Ambiguous {
                id: id.to_owned(),
                count,
            }),
        }
    }

    /// Removes a memory from every file of its scope that has it, and from the index. Returns whether it was there.
    ///
    /// # Errors
    /// When a file is not UTF-8, or the disk fails.
    pub fn forget(&self, memory: &Memory) -> Result<bool, MemoryError> {
        let folder = self.folder(memory.scope)?.lock()?;
        let mut is_gone = false;
        for file in folder.files()?.files {
            let Ok(content) = folder.read_text(&file.name) else {
                continue;
            };
            let found = notes::parse(memory.scope, &file.name, &content);
            let lines: Vec<_> = found.into_iter().filter(|it| it.id == memory.id).collect();
            let lines: Vec<_> = lines.into_iter().map(|it| it.lines).collect();
            if !lines.is_empty() {
                folder.write(&file.name, &notes::without_lines(&content, &lines))?;
                is_gone = true;
            }
        }
        drop(folder);
        let folders: Vec<_> = self.folders().collect();
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(err) = index.purge(&folders) {
            tracing::warn!(error = err.line(), "the index of memories was not updated");
        }
        Ok(is_gone)
    }

    /// Returns the path of a scope's `MEMORY.md`, or of another of its files.
    ///
    /// # Errors
    /// When there is nothing of that scope here, or the name is not one of a file of memories.
    pub fn path(&self, scope: Scope, name: Option<&str>) -> Result<PathBuf, MemoryError> {
        let name = name.unwrap_or(MAIN_FILE);
        match crate::folder::is_name(name) {
            true => Ok(self.folder(scope)?.path().join(name)),
            false => Err(MemoryError::BadName {
                name: name.to_owned(),
            }),
        }
    }

    /// Removes the memories of a chat whose session is gone.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn forget_chat(data: &Path, session: &SessionId) -> Result<(), MemoryError> {
        let path = data.join(FOLDER).join(CHATS).join(chat_name(session));
        match std::fs::remove_dir_all(&path) {
            Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                Err(MemoryError::io(path)(err))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn folder(&self, scope: Scope) -> Result<&Folder, MemoryError> {
        self.folders
            .iter()
            .find(|it| it.scope == scope)
            .ok_or(MemoryError::NoScope { scope })
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = &Folder> {
        self.folders.iter()
    }
}

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memories")
            .field("folders", &self.folders)
            .finish_non_exhaustive()
    }
}

/// Returns the mark of a call in a file: a hash of its key.
pub(crate) fn call_mark(key: &str) -> String {
    let hash = Sha256::digest(key);
    HEXLOWER.encode(hash.get(..8).unwrap_or_default())
}

/// Returns where a memory goes: the file, its content, and its content with the memory.
fn place(
    folder: &OpenFolder,
    text: &str,
    new: &NewMemory,
) -> Result<(String, String, String), MemoryError> {
    if new.scope != Scope::Chat && !new.origin.from_outside {
        match folder.read_text(MAIN_FILE) {
            Ok(before) => {
                let after = notes::with_memory(&before, text, &new.origin);
                if start::has_room_for(&after) {
                    return Ok((MAIN_FILE.to_owned(), before, after));
                }
            }
            Err(MemoryError::TooLarge { .. }) => {}
            Err(err) => return Err(err),
        }
    }
    let saved = new.origin.saved.unwrap_or_default();
    let file = format!("{}.md", calendar::local(saved).date());
    let before = folder.read_text(&file)?;
    let after = notes::with_memory(&before, text, &new.origin);
    Ok((file, before, after))
}

/// Returns the memory that the call saved, or that says the same.
fn known(
    folder: &OpenFolder,
    scope: Scope,
    text: &str,
    call: Option<&str>,
) -> Result<Option<Memory>, MemoryError> {
    let is_it = |it: &Memory| {
        (call.is_some() && it.origin.call.as_deref() == call)
            || notes::says_the_same(&it.text, text)
    };
    find_in(folder, scope, is_it)
}

fn known_call(
    folder: &OpenFolder,
    scope: Scope,
    call: &str,
) -> Result<Option<Memory>, MemoryError> {
    find_in(folder, scope, |it| it.origin.call.as_deref() == Some(call))
}

fn find_in(
    folder: &OpenFolder,
    scope: Scope,
    is_it: impl Fn(&Memory) -> bool,
) -> Result<Option<Memory>, MemoryError> {
    for file in folder.files()?.files {
        let Ok(Some(content)) = folder.read(&file.name) else {
            continue;
        };
        let content = String::from_utf8_lossy(&content);
        let found = notes::parse(scope, &file.name, &content);
        if let Some(known) = found.into_iter().find(&is_it) {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

fn version(content: &str) -> FileVersion {
    match content.is_empty() {
        true => FileVersion::Absent,
        false => FileVersion::Sha256(HEXLOWER.encode(&Sha256::digest(content))),
    }
}

/// An id may hold letters of any language and is at most 128 bytes; one that is not a plain name is replaced by its hash.
fn chat_name(session: &SessionId) -> String {
    let id = session.as_str();
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.:@+".contains(&it);
    let is_name = (1..=CHAT_NAME_BYTES_MAX).contains(&id.len()) && !id.starts_with('.');
    match is_name && id.bytes().all(is_plain) {
        true => id.to_owned(),
        false => format!("%{}", HEXLOWER.encode(&Sha256::digest(id))),
    }
}
