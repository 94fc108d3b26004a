//! Chooses the session that the prompt starts with.

use crate::cli::AskArgs;
use crate::commands::ask::{AskMode, source};
use crate::error::Result;
use rondo_runtime::settings::Settings;
use rondo_runtime::{FoundSession, Runtime, Session, SessionOptions, SessionSource};
use std::path::PathBuf;

/// The session that the prompt begins with.
pub(super) enum Chosen {
    /// A new one, whose record begins with the first question or cell.
    New(Box<Session>),
    Known(Box<FoundSession>),
}

impl Chosen {
    pub(super) fn find(
        runtime: &Runtime,
        args: &AskArgs,
        options: &SessionOptions,
    ) -> Result<Self> {
        match source(args, AskMode::Ask) {
            SessionSource::New => {
                let settings = runtime.settings(options.directory.clone())?;
                Ok(Self::New(Box::new(Session::new(runtime.clone(), settings))))
            }
            source => Ok(Self::Known(Box::new(runtime.find(&source, options)?))),
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        match self {
            Self::New(session) => &session.settings,
            Self::Known(found) => &found.settings,
        }
    }

    /// Returns the session's directory, where that is another one than the user's.
    pub(super) fn own_directory(&self, options: &SessionOptions) -> Option<PathBuf> {
        let own = &self.settings().directory;
        (*own != options.directory).then(|| own.clone())
    }

    pub(super) fn open(self) -> Result<Session> {
        match self {
            Self::New(session) => Ok(*session),
            Self::Known(mut found) => {
                found.keep_model()?;
                Ok(found.open(String::new())?)
            }
        }
    }
}
