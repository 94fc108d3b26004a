//! Tab at the prompt of the shell's pane: names of commands and files.

use super::{App, Effect};

/// Names that are shown where several fit.
const SHOWN_MAX: usize = 8;

/// A word that may become another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaneWord {
    pub(crate) word: String,
    /// Whether it names a command.
    pub(crate) is_command: bool,
    /// Where the shell is, where that is known.
    pub(crate) directory: Option<String>,
}

impl App {
    pub(super) fn complete_in_pane(&mut self) -> Vec<Effect> {
        let before = self.pane.prompt.editor.before();
        let (earlier, word) = match before.rsplit_once(char::is_whitespace) {
            Some((earlier, word)) => (earlier.trim(), word),
            None => ("", before),
        };
        if word.contains(['\'', '"', '\\', '$', '*', '`']) {
            self.flash("words with quotes or signs of the shell are not completed");
            return Vec::new();
        }
        let begins_command = earlier.is_empty() || earlier.ends_with(['|', ';', '&', '(']);
        vec![Effect::CompleteInPane(PaneWord {
            word: word.to_owned(),
            is_command: begins_command && !word.contains('/'),
            directory: self.pane.directory().map(str::to_owned),
        })]
    }

    /// A word may become these names, which are sorted. A name that ends with `/` is a directory's.
    pub(crate) fn completes_in_pane(&mut self, asked: &PaneWord, names: &[String]) {
        let editor = &mut self.pane.prompt.editor;
        // Something else may have been typed meanwhile.
        if self.pane.shows_python || !editor.before().ends_with(&asked.word) {
            return;
        }
        let Some(first) = names.first() else {
            return self.flash("nothing begins so");
        };
        let common = names.iter().skip(1).fold(first.as_str(), |common, name| {
            let same = common.chars().zip(name.chars());
            let bytes = same.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8());
            common.get(..bytes.sum()).unwrap_or_default()
        });
        if let Some(rest) = common.strip_prefix(asked.word.as_str()) {
            editor.insert(&escaped(rest));
        }
        match names.len() {
            1 if !first.ends_with('/') => editor.insert(" "),
            1 => {}
            count => {
                let shown: Vec<&str> = names.iter().take(SHOWN_MAX).map(String::as_str).collect();
                let more = count.saturating_sub(SHOWN_MAX);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                self.flash(format!("{}{more}", shown.join("  ")));
            }
        }
    }
}

/// Returns a text as the shell reads it literally.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if !(c.is_alphanumeric() || "._/+-@,:=%~".contains(c)) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
