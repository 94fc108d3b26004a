//! The text of a skill as the model reads it, within its bounds.

use std::fmt;
use std::path::{Path, PathBuf};

/// The bound on lines that are shown at once, as the specification recommends for whole skills.
const LINES_MAX: usize = 500;
/// The bound on bytes: about 5,000 tokens.
const BYTES_MAX: usize = 20_000;
/// The word for the skill's directory that skills written for other programs use.
const FOLDER_VARIABLE: &str = "${CLAUDE_SKILL_DIR}";

/// A skill's text, and the files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillText {
    /// The text, at most 500 lines and 20,000 bytes.
    pub body: String,
    /// The line of the file where what was left out begins, from 1; `None` if nothing was.
    pub cut_at: Option<usize>,
    /// The other files of its directory, relative to it.
    pub files: Vec<String>,
    /// Set if there are more files.
    pub has_more_files: bool,
    /// Directory of the skill.
    pub folder: PathBuf,
}

impl SkillText {
    /// Takes the body of a file, of which more may follow that was not read.
    pub(super) fn new(file: &str, body: &str, is_cut: bool, folder: &Path) -> Self {
        let lines_before = file.lines().count() - body.lines().count();
        let mut kept = String::new();
        let mut lines = body.split_inclusive('\n');
        let mut count = 0;
        let mut cut_at = None;
        for line in lines.by_ref() {
            if count == LINES_MAX || kept.len() + line.len() > BYTES_MAX {
                cut_at = Some(lines_before + count + 1);
                break;
            }
            kept.push_str(line);
            count += 1;
        }
        if is_cut {
            cut_at = cut_at.or(Some(lines_before + count));
        }
        let shown = folder.display().to_string();
        Self {
            body: kept.trim().replace(FOLDER_VARIABLE, &shown),
            cut_at,
            files: Vec::new(),
            has_more_files: false,
            folder: folder.to_owned(),
        }
    }

    pub(super) fn with_files(self, files: Vec<String>, has_more_files: bool) -> Self {
        Self {
            files,
            has_more_files,
            ..self
        }
    }
}

impl fmt::Display for SkillText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.body)?;
        if let Some(line) = self.cut_at {
            let file = self.folder.join(rondo_tools::skill_files::SKILL_FILE);
            write!(
                f,
                "\n[cut: `{}` continues from line {line}]",
                file.display()
            )?;
        }
        if !self.files.is_empty() {
            let more = match self.has_more_files {
                true => " and more",
                false => "",
            };
            write!(
                f,
                "\n\n[files beside it in `{}`: {}{more}]",
                self.folder.display(),
                self.files.join(", ")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(body: &str) -> Option<usize> {
        let file = format!("---\nname: a\n---\n{body}");
        SkillText::new(&file, body, false, Path::new("/s/a")).cut_at
    }

    #[test]
    fn the_bound_on_lines_holds_to_the_line() {
        let of = |lines: usize| cut(&"x\n".repeat(lines));
        assert_eq!(of(LINES_MAX - 1), None);
        assert_eq!(of(LINES_MAX), None);
        assert_eq!(of(LINES_MAX + 1), Some(3 + LINES_MAX + 1));
    }

    #[test]
    fn the_bound_on_bytes_holds_to_the_byte() {
        let of = |bytes: usize| cut(&format!("x\n{}", "y".repeat(bytes - 2)));
        assert_eq!(of(BYTES_MAX - 1), None);
        assert_eq!(of(BYTES_MAX), None);
        assert_eq!(of(BYTES_MAX + 1), Some(3 + 2));
    }

    #[test]
    fn the_model_reads_where_the_rest_and_the_files_are() {
        let body = "Run ${CLAUDE_SKILL_DIR}/fill.py.\n";
        let text = SkillText::new(body, body, true, Path::new("/s/a"));
        let text = text.with_files(vec!["fill.py".to_owned()], true);
        assert_eq!(
            text.to_string(),
            "Run /s/a/fill.py.\n[cut: `/s/a/SKILL.md` continues from line 1]\n\n\
             [files beside it in `/s/a`: fill.py and more]"
        );
    }
}
