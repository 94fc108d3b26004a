//! The prompt: mode, directory, branch, model.

use crate::repl::mode::Mode;
use reedline::{
    Color, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, PromptViMode,
};
use rondo_core::shown::readable_line;
use rondo_tui::prompt::run_mode::RunMode;
use std::borrow::Cow;

/// What stands before and behind the line that is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::repl) struct Face {
    /// What a line is taken for.
    pub(in crate::repl) mode: Mode,
    /// What runs without asking; shown unless that is what only looks.
    pub(in crate::repl) run_mode: RunMode,
    /// The directory, as people write it.
    pub(in crate::repl) directory: String,
    /// The branch of git, or the commit where there is none.
    pub(in crate::repl) branch: Option<String>,
    /// Of the last command; shown in the shell, unless it is 0.
    pub(in crate::repl) exit_code: i32,
    /// Who answers.
    pub(in crate::repl) model: String,
    /// How much of the context was used by the last request, in percent.
    pub(in crate::repl) context_percent: Option<u64>,
}

impl Face {
    /// Returns what stands before a line that was not typed here.
    pub(in crate::repl) fn echo(&self) -> String {
        format!("{}{}", self.render_prompt_left(), self.mark())
    }

    fn mark(&self) -> &'static str {
        match self.mode {
            Mode::Agent => "› ",
            Mode::Shell => "$ ",
            Mode::Python => ">>> ",
        }
    }
}

impl Prompt for Face {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        // A command can give both any name.
        let mut left = format!("{} {}", self.mode.name(), readable_line(&self.directory));
        if let Some(branch) = &self.branch {
            left.push_str(&format!(" ({})", readable_line(branch)));
        }
        if self.run_mode != RunMode::Ask {
            left.push_str(&format!(" · {}", self.run_mode.name()));
        }
        if self.mode == Mode::Shell && self.exit_code != 0 {
            left.push_str(&format!(" [{}]", self.exit_code));
        }
        left.push(' ');
        left.into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        match self.context_percent {
            Some(percent) => format!("{} {percent}%", self.model).into(),
            None => self.model.as_str().into(),
        }
    }

    fn render_prompt_indicator(&self, keys: PromptEditMode) -> Cow<'_, str> {
        match keys {
            PromptEditMode::Vi(PromptViMode::Normal | PromptViMode::Visual) => {
                format!(":{}", self.mark()).into()
            }
            _ => self.mark().into(),
        }
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        match self.mode {
            Mode::Python => "... ".into(),
            Mode::Agent | Mode::Shell => "  ".into(),
        }
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failed = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "no ",
        };
        format!("({failed}match for `{}`) ", search.term).into()
    }

    fn get_prompt_color(&self) -> Color {
        match self.mode {
            Mode::Agent => Color::Cyan,
            Mode::Shell => Color::Green,
            Mode::Python => Color::Yellow,
        }
    }

    fn get_indicator_color(&self) -> Color {
        self.get_prompt_color()
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::DarkGray
    }

    fn get_prompt_right_color(&self) -> Color {
        Color::DarkGray
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_turn_the_prompt_around() {
        let face = Face {
            mode: Mode::Agent,
            run_mode: RunMode::Ask,
            directory: "~/a\u{202e}b".to_owned(),
            branch: Some("c\u{202e}d".to_owned()),
            exit_code: 0,
            model: String::new(),
            context_percent: None,
        };
        let shown = face.render_prompt_left();
        assert_eq!(shown, r"agent ~/a\u{202e}b (c\u{202e}d) ");
    }
}
