//! The sessions of chats: at most fifty messages each, in memory and, if there is a directory, in files.

use super::error::AgentError;
use super::translate;
use super::types::LlmMessage;
use rondo_core::clock::Clock;
use rondo_core::compaction::keep_latest;
use rondo_launch::{Readers, replace_file};
use rondo_types::{Message, Transcript};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The most messages that a session keeps between turns.
pub const SESSION_MESSAGES_MAX: u32 = 50;
/// The bound on a session's file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The longest id that is a file name.
const ID_BYTES_MAX: usize = 200;

/// The conversation of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// `{channel}_{chat_id}`, escaped.
    pub session_id: String,
    /// The channel's name.
    pub channel: String,
    /// The chat in that channel.
    pub chat_id: String,
    /// When it began, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// When it was saved last, in milliseconds since 1970.
    pub last_accessed_ms: u64,
    /// Its messages as they came, with what a provider wants back unchanged.
    #[serde(rename = "messages")]
    transcript: Vec<Message>,
}

impl Session {
    fn new(session_id: &str, channel: &str, chat_id: &str) -> Self {
        let now = Clock::system().now().0;
        Self {
            session_id: session_id.to_owned(),
            channel: channel.to_owned(),
            chat_id: chat_id.to_owned(),
            created_at_ms: now,
            last_accessed_ms: now,
            transcript: Vec::new(),
        }
    }

    /// Returns its messages: calls are on assistant messages, each result is one of its own.
    #[must_use]
    pub fn messages(&self) -> Vec<LlmMessage> {
        translate::llm_messages(&self.transcript())
    }

    pub(super) fn transcript(&self) -> Transcript {
        self.transcript.iter().cloned().map(Arc::new).collect()
    }

    /// Takes the messages after a turn. The oldest go if there are more than [`SESSION_MESSAGES_MAX`], and no call is
    /// parted from its result.
    pub(super) fn take(&mut self, mut transcript: Transcript) {
        keep_latest(&mut transcript, SESSION_MESSAGES_MAX);
        self.transcript = transcript.into_iter().map(Arc::unwrap_or_clone).collect();
        self.last_accessed_ms = Clock::system().now().0;
    }
}

/// The sessions of all chats.
///
/// Their lock is held to look one up and to put it back, never while a model works or a file is written.
#[derive(Debug, Clone, Default)]
pub struct SessionManager {
    sessions: Arc<RwLock<HashMap<String, Session>>>,
    directory: Option<PathBuf>,
}

impl SessionManager {
    /// Keeps sessions in memory alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps sessions in files of a directory, which is made when the first is saved: `SESSION_ID.json`.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            sessions: Arc::default(),
            directory: Some(directory.into()),
        }
    }

    /// Returns a session, if there is one in memory or in a file. A file that cannot be read as one is renamed to
    /// `SESSION_ID.json.corrupted`, and the chat starts over. Blocks for the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn get(&self, session_id: &str) -> Result<Option<Session>, AgentError> {
        let sessions = self.sessions.read();
        let sessions = sessions.unwrap_or_else(PoisonError::into_inner);
        let known = sessions.get(session_id).cloned();
        drop(sessions);
        match (known, self.path(session_id)?) {
            (Some(session), _) => Ok(Some(session)),
            (None, Some(path)) => read(&path).map_err(|error| failed(&path, &error)),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn get_or_new(
        &self,
        session_id: &str,
        channel: &str,
        chat_id: &str,
    ) -> Result<Session, AgentError> {
        let known = self.get(session_id)?;
        Ok(known.unwrap_or_else(|| Session::new(session_id, channel, chat_id)))
    }

    /// Keeps a session. On return it is on the disk, if there is a directory. Blocks for the disk.
    ///
    /// # Errors
    /// When the disk fails; it is kept in memory all the same.
    pub fn save(&self, session: Session) -> Result<(), AgentError> {
        let path = self.path(&session.session_id)?;
        let json = path.as_ref().map(|_| serde_json::to_vec(&session));
        let id = session.session_id.clone();
        let sessions = self.sessions.write();
        let mut sessions = sessions.unwrap_or_else(PoisonError::into_inner);
        sessions.insert(id, session);
        drop(sessions);
        let (Some(path), Some(json)) = (path, json) else {
            return Ok(());
        };
        let written = json.map_err(io::Error::other);
        let written = written.and_then(|json| replace(&path, &json));
        written.map_err(|error| failed(&path, &error))
    }

    fn path(&self, session_id: &str) -> Result<Option<PathBuf>, AgentError> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let path = directory.join(format!("{session_id}.json"));
        if session_id.len() > ID_BYTES_MAX {
            let error = io::Error::other(format!("its id is longer than {ID_BYTES_MAX} bytes"));
            return Err(failed(&path, &error));
        }
        Ok(Some(path))
    }
}

fn failed(path: &Path, error: &io::Error) -> AgentError {
    AgentError::Session {
        path: path.to_owned(),
        message: error.to_string(),
    }
}

fn read(path: &Path) -> io::Result<Option<Session>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut json = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut json)?;
    match serde_json::from_slice(&json) {
        Ok(session) => Ok(Some(session)),
        Err(error) => {
            let aside = path.with_extension("json.corrupted");
            tracing::warn!(path = %path.display(), %error, "a session's file is damaged and set aside");
            fs::rename(path, aside)?;
            Ok(None)
        }
    }
}

/// Replaces a file as a whole, so that a crash leaves the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    replace_file(path, bytes, Readers::AsBefore)
}
