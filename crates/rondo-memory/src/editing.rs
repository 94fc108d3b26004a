//! A file of memories in the user's editor, while others may save to it.
//!
//! The editor works on a copy. Memories added to the file meanwhile are added to the user's version; after any other
//! change the user's version is kept beside it and nothing is overwritten.

use crate::error::MemoryError;
use crate::folder::MAIN_FILE;
use crate::memories::Memories;
use crate::scope::Scope;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A copy of a file that is being edited. Dropping it removes the copy.
#[derive(Debug)]
pub struct Editing {
    scope: Scope,
    name: String,
    before: String,
    copy: PathBuf,
    is_kept: bool,
}

impl Memories {
    /// Makes a copy of a file for the user's editor, in a directory of the user's; `MEMORY.md` if no name is given.
    /// A file that does not exist is an empty one.
    ///
    /// # Errors
    /// When the name is not one of a file of memories, the file is a link or not UTF-8, or the disk fails.
    pub fn begin_edit(
        &self,
        scope: Scope,
        name: Option<&str>,
        copies: &Path,
    ) -> Result<Editing, MemoryError> {
        self.path(scope, name)?;
        let name = name.unwrap_or(MAIN_FILE);
        let open = self.folder(scope)?.open()?;
        let before = open.map_or(Ok(String::new()), |open| open.read_text(name))?;
        let copy = copies.join(format!("{scope}-{}-{name}", std::process::id()));
        fs::create_dir_all(copies).map_err(MemoryError::io(copies))?;
        let mut options = fs::OpenOptions::new();
        let _ = fs::remove_file(&copy);
        let file = options.write(true).create_new(true).mode(0o600).open(&copy);
        let written = file.and_then(|mut file| file.write_all(before.as_bytes()));
        written.map_err(MemoryError::io(&copy))?;
        Ok(Editing {
            scope,
            name: name.to_owned(),
            before,
            copy,
            is_kept: false,
        })
    }

    /// Takes over what the user made of the copy. Returns whether the file changed.
    ///
    /// # Errors
    /// [`MemoryError::Changed`] when others changed more of the file than its end; the copy is kept then, as it is when
    /// the disk fails.
    pub fn finish_edit(&self, mut editing: Editing) -> Result<bool, MemoryError> {
        editing.is_kept = true;
        let edited = fs::read(&editing.copy).map_err(MemoryError::io(&editing.copy))?;
        let edited = String::from_utf8(edited).map_err(|_| MemoryError::NotText {
            path: editing.copy.clone(),
        })?;
        if edited == editing.before {
            editing.is_kept = false;
            return Ok(false);
        }
        let folder = self.folder(editing.scope)?.lock()?;
        let now = folder.read_text(&editing.name)?;
        let Some(added) = now.strip_prefix(&editing.before) else {
            return Err(MemoryError::Changed {
                path: folder.path_of(&editing.name),
                kept: editing.copy.clone(),
            });
        };
        let mut whole = edited;
        if !added.is_empty() && !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
        folder.write(&editing.name, &(whole + added))?;
        editing.is_kept = false;
        Ok(true)
    }
}

impl Editing {
    /// Returns the copy to edit.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.copy
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.copy);
        }
    }
}
