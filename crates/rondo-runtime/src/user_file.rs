//! Edits the user's configuration file.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::files;
use crate::paths::Paths;
use crate::table::{FromUntrusted, Layer, Setting, setting, unknown};
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

/// The bound on the file, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// The table of servers.
const SERVERS: [&str; 2] = ["mcp", "servers"];
/// The key of the folders that are trusted.
const TRUSTED: &str = "trusted_folders";
/// The key of the folders whose commands run in the sandbox.
const SANDBOXED: &str = "sandboxed_folders";

/// The file as it was read, with changes that [`save`](Self::save) writes. Comments, order and other values are
/// preserved.
#[derive(Debug)]
pub struct UserFile {
    path: PathBuf,
    document: DocumentMut,
}

impl UserFile {
    /// Reads the file; one that does not exist is empty.
    ///
    /// # Errors
    /// When it cannot be read, or is not such a configuration.
    pub fn read(paths: &Paths) -> Result<Self> {
        // A link, as those who keep their files elsewhere have, is followed and stays.
        let path = paths.user_config();
        let path = path.canonicalize().unwrap_or(path);
        // The errors of a wrong value are those of every other command.
        Layer::from_file(&path)?;
        let text = match files::read_text(&path, BYTES_MAX) {
            Ok(text) => text,
            Err(_) if !files::is_present(&path) => String::new(),
            Err(err) => return Err(failed("read", &path, err)),
        };
        let document = text.parse::<DocumentMut>();
        let document = document.map_err(|err| {
            let what = format!("failed to parse `{}`", path.display());
            SetupError::because(SetupErrorKind::Config, what, err)
        })?;
        Ok(Self { path, document })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets a setting to a typed value, in the syntax of its environment variable.
    ///
    /// # Errors
    /// When there is no such setting, or the value is invalid.
    pub fn set(&mut self, name: &str, typed: &str) -> Result<()> {
        let value = value_of(named(name)?, typed)?;
        let value = edited(&value)?;
        match self.document.get_mut(name).and_then(Item::as_value_mut) {
            Some(known) => {
                let comments = known.decor().clone();
                *known = value;
                *known.decor_mut() = comments;
            }
            None => drop(self.document.insert(name, Item::Value(value))),
        }
        Ok(())
    }

    /// Removes a setting, and returns whether it was set.
    ///
    /// # Errors
    /// When there is no such setting.
    pub fn unset(&mut self, name: &str) -> Result<bool> {
        named(name)?;
        Ok(self.document.remove(name).is_some())
    }

    /// Adds a folder to the trusted ones, and returns whether it is new.
    ///
    /// # Errors
    /// When its path is not UTF-8.
    pub fn trust(&mut self, folder: &Path) -> Result<bool> {
        self.add_folder(TRUSTED, folder)
    }

    /// Removes a folder from the trusted ones, and returns whether it was one.
    ///
    /// # Errors
    /// When its path is not UTF-8.
    pub fn distrust(&mut self, folder: &Path) -> Result<bool> {
        self.remove_folder(TRUSTED, folder)
    }

    /// Runs commands in a folder in the sandbox without a question from now on, and returns whether that is new.
    ///
    /// # Errors
    /// When its path is not UTF-8.
    pub fn sandbox(&mut self, folder: &Path) -> Result<bool> {
        self.add_folder(SANDBOXED, folder)
    }

    /// Asks about commands in a folder again, and returns whether they were not.
    ///
    /// # Errors
    /// When its path is not UTF-8.
    pub fn unsandbox(&mut self, folder: &Path) -> Result<bool> {
        self.remove_folder(SANDBOXED, folder)
    }

    fn add_folder(&mut self, key: &str, folder: &Path) -> Result<bool> {
        let folder = utf8(folder)?;
        let folders = self.folders(key);
        if folders.iter().any(|it| it.as_str() == Some(folder)) {
            return Ok(false);
        }
        folders.push(folder);
        Ok(true)
    }

    fn remove_folder(&mut self, key: &str, folder: &Path) -> Result<bool> {
        let folder = utf8(folder)?;
        let folders = self.folders(key);
        let before = folders.len();
        folders.retain(|it| it.as_str() != Some(folder));
        Ok(folders.len() < before)
    }

    /// Adds a server, or replaces the one of that name, and returns whether it is new.
    ///
    /// # Errors
    /// When the file has something else in its place.
    pub fn add_server(&mut self, name: &str, server: &toml::Table) -> Result<bool> {
        self.insert(SERVERS, name, server)
    }

    /// Adds a channel of the hub, or replaces the one of that name, and returns whether it is new.
    ///
    /// # Errors
    /// When the file has something else in its place.
    pub fn add_channel(&mut self, name: &str, channel: &toml::Table) -> Result<bool> {
        self.insert(["hub", "channels"], name, channel)
    }

    /// Adds a user of the hub, or replaces the one of that name, and returns whether they are new.
    ///
    /// # Errors
    /// When the file has something else in its place.
    pub fn add_user(&mut self, name: &str, user: &toml::Table) -> Result<bool> {
        self.insert(["hub", "users"], name, user)
    }

    fn insert(&mut self, place: [&str; 2], name: &str, table: &toml::Table) -> Result<bool> {
        let text = toml::Value::Table(table.clone()).to_string();
        let written = format!("table = {text}").parse::<DocumentMut>();
        let written = written.map_err(|err| {
            SetupError::because(SetupErrorKind::Other, "failed to write the table", err)
        })?;
        let inline = written.get("table").and_then(Item::as_inline_table);
        let table = inline.cloned().unwrap_or_default().into_table();
        let before = self.tables(place)?.insert(name, Item::Table(table));
        Ok(before.is_none())
    }

    /// Removes a server, and returns whether there was one of that name.
    ///
    /// # Errors
    /// When the file has something else in its place.
    pub fn remove_server(&mut self, name: &str) -> Result<bool> {
        Ok(self.tables(SERVERS)?.remove(name).is_some())
    }

    fn tables(&mut self, [outer, inner]: [&str; 2]) -> Result<&mut dyn TableLike> {
        let implicit = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let tables = self.document.entry(outer).or_insert_with(implicit);
        let tables = tables.as_table_like_mut();
        let tables = tables.map(|it| it.entry(inner).or_insert_with(implicit));
        let tables = tables.and_then(Item::as_table_like_mut);
        tables.ok_or_else(|| {
            let message = format!("`{outer}.{inner}` is not a table of tables");
            SetupError::new(SetupErrorKind::Config, message)
        })
    }

    fn folders(&mut self, key: &str) -> &mut Array {
        let item = self.document.entry(key);
        let item = item.or_insert_with(|| Item::Value(Array::new().into()));
        if !item.is_array() {
            *item = Item::Value(Array::new().into());
        }
        // It is one now.
        #[expect(clippy::expect_used, reason = "it was made an array above")]
        item.as_array_mut().expect("an array")
    }

    /// Replaces the file atomically.
    ///
    /// # Errors
    /// When it cannot be written; the old file is then unchanged.
    pub fn save(&self) -> Result<()> {
        files::replace(&self.path, &self.document.to_string())
            .map_err(|err| failed("write", &self.path, err))
    }
}

fn named(name: &str) -> Result<&'static Setting> {
    match setting(name) {
        Some(_) if name == TRUSTED => {
            let message = format!("`{TRUSTED}` cannot be set as one value");
            Err(SetupError::new(SetupErrorKind::Usage, message)
                .hint("`rondo trust DIR` adds a folder, `rondo trust --revoke DIR` removes it"))
        }
        Some(_) if name == SANDBOXED => {
            let message = format!("`{SANDBOXED}` cannot be set as one value");
            Err(SetupError::new(SetupErrorKind::Usage, message).hint(
                "`rondo policy sandbox DIR` adds a folder, `rondo policy sandbox --revoke DIR` removes it",
            ))
        }
        Some(known) => Ok(known),
        None => Err(unknown(name)),
    }
}

/// Parses a typed value as the setting's environment variable would be.
fn value_of(setting: &Setting, typed: &str) -> Result<toml::Value> {
    let name = setting.name;
    let wrong = |why: &str| {
        let message = format!("`{typed}` cannot be the value of `{name}`: {why}");
        SetupError::new(SetupErrorKind::Usage, message)
            .hint(format!("the value is {}", setting.kind))
    };
    let layer = Layer::typed(setting, typed).map_err(|why| wrong(&why))?;
    layer
        .check("the command line")
        .map_err(|err| wrong(&err.line()))?;
    layer.get(name).ok_or_else(|| {
        let unset = format!("the value is empty; `rondo config unset {name}` removes the setting");
        wrong(&unset)
    })
}

/// Converts a value to the document's type.
fn edited(value: &toml::Value) -> Result<toml_edit::Value> {
    let text = value.to_string();
    text.parse().map_err(|err: toml_edit::TomlError| {
        SetupError::because(SetupErrorKind::Other, "failed to write the value", err)
    })
}

fn utf8(folder: &Path) -> Result<&str> {
    folder.to_str().ok_or_else(|| {
        let message = format!("the path `{}` is not UTF-8", folder.display());
        SetupError::new(SetupErrorKind::Input, message)
    })
}

fn failed(what: &str, path: &Path, err: std::io::Error) -> SetupError {
    let what = format!("failed to {what} `{}`", path.display());
    SetupError::because(SetupErrorKind::Config, what, err)
}

/// Returns the effect of a setting in a project's configuration, in a few words.
#[must_use]
pub fn in_projects(setting: &Setting) -> &'static str {
    match setting.untrusted {
        FromUntrusted::Ignored => "ignored",
        FromUntrusted::MayLower => "lower only",
        FromUntrusted::MayOnlyBe(true) => "`true` only",
        FromUntrusted::MayOnlyBe(false) => "`false` only",
        FromUntrusted::MayAdd => "added",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use std::fs;

    fn file(home: &tempfile::TempDir, text: &str) -> UserFile {
        fs::write(home.path().join("config.toml"), text).unwrap();
        let env = Env::of(&[("RONDO_HOME", home.path().to_str().unwrap())]);
        UserFile::read(&Paths::find(&env).unwrap()).unwrap()
    }

    #[test]
    fn a_value_is_changed_and_everything_else_stays() {
        let home = tempfile::tempdir().unwrap();
        let text = "# mine\nmodel = 'a/b' # the fast one\n\n[profiles.x]\nextends = 'hub'\n";
        let mut file = file(&home, text);
        file.set("deadline", "90s").unwrap();
        file.set("allowed_tools", "exec(git *), read_file").unwrap();
        file.set("yolo", "no").unwrap();
        file.set("model", "c/d").unwrap();
        file.save().unwrap();
        let written = fs::read_to_string(file.path()).unwrap();
        assert_eq!(
            written,
            "# mine\nmodel = \"c/d\" # the fast one\ndeadline = \"1m30s\"\nallowed_tools = [\"exec(git *)\", \"read_file\"]\nyolo = false\n\n[profiles.x]\nextends = 'hub'\n"
        );
        assert!(file.unset("model").unwrap());
        assert!(!file.unset("model").unwrap());
    }

    #[test]
    fn what_is_no_setting_and_what_is_no_value_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let mut file = file(&home, "");
        for (name, typed, line) in [
            ("modle", "x", "there is no setting `modle`"),
            (
                "max_steps",
                "0",
                "`max_steps`, as set by the command line, is out of its range",
            ),
            (
                "max_steps",
                "many",
                "`many` cannot be the value of `max_steps`: invalid digit found in string",
            ),
            ("effort", "huge", "expected one of `low`, `medium`, `high`"),
            ("model", "", "the value is empty"),
            (
                TRUSTED,
                "/x",
                "`trusted_folders` cannot be set as one value",
            ),
            (
                SANDBOXED,
                "/x",
                "`sandboxed_folders` cannot be set as one value",
            ),
        ] {
            let error = file.set(name, typed).unwrap_err();
            assert_eq!(error.kind, SetupErrorKind::Usage);
            assert!(error.line().contains(line), "{}", error.line());
            assert!(error.hint.is_some());
        }
        assert_eq!(file.document.to_string(), "");
    }

    #[test]
    fn folders_are_trusted_once_and_no_more_when_that_is_taken_back() {
        let home = tempfile::tempdir().unwrap();
        let mut file = file(&home, "trusted_folders = [\n  '/a', # work\n]\n");
        assert!(!file.trust(Path::new("/a")).unwrap());
        assert!(file.trust(Path::new("/b")).unwrap());
        file.save().unwrap();
        let layer = Layer::from_file(file.path()).unwrap();
        let folders = layer.trusted_folders.unwrap();
        assert_eq!(folders, [Path::new("/a"), Path::new("/b")]);
        assert!(file.distrust(Path::new("/a")).unwrap());
        assert!(!file.distrust(Path::new("/c")).unwrap());
    }

    #[test]
    fn servers_are_added_replaced_and_removed_and_everything_else_stays() {
        let home = tempfile::tempdir().unwrap();
        let mut file = file(&home, "# mine\nmodel = 'a/b'\n");
        let server = |text: &str| text.parse::<toml::Table>().unwrap();
        let first = server("command = 'npx'\nargs = ['-y', 'x']\n[env]\nKEY = '${KEY}'");
        assert!(file.add_server("s", &first).unwrap());
        assert!(!file.add_server("s", &server("url = 'http://x'")).unwrap());
        assert!(file.add_server("t", &first).unwrap());
        file.save().unwrap();
        let layer = Layer::from_file(file.path()).unwrap();
        assert_eq!(layer.mcp.servers["s"].url.as_deref(), Some("http://x"));
        assert_eq!(layer.mcp.servers["t"].env["KEY"], "${KEY}");
        assert!(file.remove_server("s").unwrap());
        assert!(!file.remove_server("s").unwrap());
        assert!(
            file.document
                .to_string()
                .starts_with("# mine\nmodel = 'a/b'\n\n[mcp.servers.t]\n")
        );
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let real = elsewhere.path().join("dotfile");
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, home.path().join("config.toml")).unwrap();
        let env = Env::of(&[("RONDO_HOME", home.path().to_str().unwrap())]);
        let mut file = UserFile::read(&Paths::find(&env).unwrap()).unwrap();
        file.set("quiet", "true").unwrap();
        file.save().unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "quiet = true\n");
        assert!(home.path().join("config.toml").is_symlink());
    }
}
