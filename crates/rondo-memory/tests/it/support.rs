//! A user with a project, and memories in both.

use rondo_core::ports::ToolInvocation;
use rondo_core::redact::Secrets;
use rondo_memory::{Author, Memories, NewMemory, Options, Origin, Scope};
use rondo_types::{SessionId, TimeMs, TurnId};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// 2026-03-01, 12:00 UTC.
pub(crate) const NOON: TimeMs = TimeMs(1_772_366_400_000);
pub(crate) const SECRET: &str = "sk-0123456789abcdef";

pub(crate) struct Scene {
    home: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        Self { home }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    pub(crate) fn options(&self) -> Options {
        options(self.home.path())
    }

    pub(crate) fn memories(&self) -> Memories {
        Memories::new(self.options())
    }

    pub(crate) fn write(&self, below: &str, content: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap()
    }
}

pub(crate) fn options(home: &Path) -> Options {
    Options {
        data: Some(home.join("data")),
        project: Some(home.join("project")),
        session: Some(SessionId::new("s-1")),
        index: Some(home.join("cache/memory.db")),
        secrets: Secrets::new([SECRET.to_owned()]),
        embedder: None,
    }
}

pub(crate) fn new(scope: Scope, text: &str) -> NewMemory {
    NewMemory {
        text: text.to_owned(),
        scope,
        origin: Origin::new(Author::User, NOON),
    }
}

pub(crate) fn texts(memories: &Memories) -> Vec<String> {
    let listed = memories.list().unwrap();
    assert_eq!(listed.notes, Vec::<String>::new());
    listed.memories.into_iter().map(|it| it.text).collect()
}

pub(crate) fn invocation(key: &str, arguments: Value) -> ToolInvocation {
    ToolInvocation {
        turn: TurnId::new("t-2"),
        idempotency_key: key.to_owned(),
        ..ToolInvocation::new(SessionId::new("s-1"), arguments)
    }
}
