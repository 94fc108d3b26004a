//! Completions of the input: commands behind `/`, files behind `@`.

use super::pasted::{attached_part, attaching};
use super::{App, Effect};
use crate::prompt::slash;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};
use rondo_core::session::Delivery;
use std::sync::Arc;

/// Completions that are shown at a time.
pub(super) const SHOWN_MAX: usize = 6;
/// Files that are found.
const FILES_MAX: usize = 50;

/// What would complete the word before the caret.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    /// What is put in place of the word, and what is said of it.
    pub(super) items: Vec<(String, String)>,
    pub(super) at: usize,
    /// Where the word begins.
    from: usize,
}

/// Files that `@` may name.
#[derive(Debug, Default)]
pub(crate) enum Files {
    /// They were not looked for.
    #[default]
    Unknown,
    /// They are looked for.
    Asked,
    /// All of them, beneath the directory.
    Known(Arc<Vec<String>>),
}

impl App {
    /// Looks for completions of what is typed now.
    pub(super) fn complete(&mut self) -> Vec<Effect> {
        self.menu = None;
        let before = self.editor.before();
        let command = before.strip_prefix('/');
        if let Some(name) = command.filter(|it| !it.contains(char::is_whitespace)) {
            let from = 0;
            let fits = slash::TABLE.iter().filter(|it| it.name.starts_with(name));
            let items = fits.map(|it| (format!("/{} ", it.name), it.does.to_owned()));
            let added = self.added.commands.iter();
            let added = added.filter(|it| it.0.starts_with(name));
            let added = added.map(|it| (format!("/{} ", it.0), it.1.clone()));
            self.show_menu(items.chain(added).collect(), from);
        } else if let Some((from, part)) = attached_part(before) {
            match &self.files {
                Files::Unknown => {
                    self.files = Files::Asked;
                    return vec![Effect::Files];
                }
                Files::Asked => {}
                Files::Known(files) => {
                    let found = ranked(files, part);
                    let items = found
                        .into_iter()
                        .map(|it| (format!("{} ", attaching(&it)), String::new()));
                    self.show_menu(items.collect(), from);
                }
            }
        }
        Vec::new()
    }

    fn show_menu(&mut self, items: Vec<(String, String)>, from: usize) {
        let typed = self.editor.before().get(from..).unwrap_or_default();
        let is_whole = matches!(items.as_slice(), [(only, _)] if only.trim_end() == typed);
        if !items.is_empty() && !is_whole {
            self.menu = Some(Menu { items, at: 0, from });
        }
    }

    /// The files are known now.
    pub(crate) fn knows_files(&mut self, files: Vec<String>) {
        self.files = Files::Known(Arc::new(files));
        // They are known: nothing is asked for again.
        drop(self.complete());
    }

    /// Moves in the menu. Returns whether there is one.
    pub(super) fn move_menu(&mut self, goes_up: bool) -> bool {
        let Some(menu) = &mut self.menu else {
            return false;
        };
        let count = menu.items.len().max(1);
        menu.at = match goes_up {
            true => (menu.at + count - 1) % count,
            false => (menu.at + 1) % count,
        };
        true
    }

    /// Returns whether Enter means the chosen completion rather than what is typed: that is the beginning of a name and
    /// no name, or another one was chosen.
    pub(super) fn means_menu(&self) -> bool {
        self.menu.as_ref().is_some_and(|menu| {
            let typed = self.editor.before().get(menu.from..).unwrap_or_default();
            let is_name = menu.items.iter().any(|it| it.0.trim_end() == typed);
            menu.at > 0 || !is_name
        })
    }

    /// Puts the chosen completion in, and does it at once where that is a command that takes nothing more.
    pub(super) fn enter_menu(&mut self) -> Vec<Effect> {
        self.take_menu();
        let name = self.editor.text().trim_end().strip_prefix('/');
        let mut all = slash::TABLE.iter();
        match all.any(|it| Some(it.name) == name && it.arguments.is_empty()) {
            true => self.send(Delivery::Steer),
            false => Vec::new(),
        }
    }

    /// Puts the chosen completion in. Returns whether there is one.
    pub(super) fn take_menu(&mut self) -> bool {
        let Some(menu) = self.menu.take() else {
            return false;
        };
        if let Some((text, _)) = menu.items.get(menu.at) {
            self.editor.replace_before(menu.from, text);
        }
        true
    }
}

/// Returns the names that a text may mean, the best first.
fn ranked(files: &[String], text: &str) -> Vec<String> {
    if text.is_empty() {
        return files.iter().take(FILES_MAX).cloned().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::parse(text, CaseMatching::Smart, Normalization::Smart);
    let found = pattern.match_list(files, &mut matcher);
    let found = found.into_iter().take(FILES_MAX);
    found.map(|it| it.0.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_a_few_of_their_letters() {
        let files = ["src/main.rs", "src/model/mod.rs", "README.md"];
        let files: Vec<String> = files.map(str::to_owned).into();
        assert_eq!(ranked(&files, "smr")[0], "src/main.rs");
        assert_eq!(ranked(&files, "readme"), ["README.md"]);
        assert_eq!(ranked(&files, "xyz"), [""; 0]);
    }
}
