//! Keys that the user exports in the shell: they are redacted, and used by the agent from its next turn on.

use super::Repl;
use super::mode::Mode;
use super::talk::LineSession;
use rondo_runtime::assignments::{is_export, mask};
use std::ffi::OsStr;

impl Repl {
    /// Returns whether a line exports a key although it was not typed for the shell: it is for no other,
    /// and the advice of an error.
    pub(super) fn is_misplaced_export(&self, line: &str) -> bool {
        self.mode() != Mode::Shell && is_export(line, &self.talk.key_names)
    }

    /// Takes the keys that the shell exports by now.
    pub(super) fn learn_keys(&mut self) {
        if self.talk.learn_keys() {
            self.forget_face();
        }
    }
}

impl LineSession {
    /// Keeps the keys in a line of the shell out of everything from now on, and returns the line without
    /// them.
    pub(super) fn mask(&mut self, line: &str) -> String {
        let masked = mask(line, &self.key_names);
        self.hide(masked.keys);
        masked.line
    }

    /// Keeps the keys that the shell exports out of everything from now on, and has the agent use those
    /// that were not there before; returns whether there are any. What the start files export is the
    /// shell's alone.
    pub(super) fn learn_keys(&mut self) -> bool {
        let Some(now) = self.workdir.environment() else {
            return false;
        };
        let before = self.exports.replace(now.clone());
        if before.as_ref() == Some(&now) {
            return false;
        }
        let all = now.iter();
        let all = all.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let keys: Vec<(&str, &str)> = all
            .filter(|(name, value)| self.key_names.has(name, value))
            .collect();
        self.hide(keys.iter().map(|(_, value)| (*value).to_owned()));
        let Some(before) = before else {
            return false;
        };
        let is_new = |(name, value): &&(&str, &str)| before.get(name) != Some(OsStr::new(value));
        let mut is_any = false;
        for (name, value) in keys.iter().filter(is_new) {
            self.settings.env.export(name, value);
            is_any = true;
        }
        if is_any {
            // The connected model has the earlier key.
            self.runtime().disconnect();
        }
        is_any
    }

    /// Keeps keys out of everything from now on.
    pub(super) fn hide(&mut self, keys: impl IntoIterator<Item = String>) {
        let all = self.secrets.with(keys);
        if all != self.secrets {
            self.shared.set_secrets(all.clone());
            self.secrets = all;
        }
    }
}
