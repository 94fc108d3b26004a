//! Renders the records of a session as Markdown, HTML or JSON. One turn at a time, so that memory is bounded.
//!
//! # Layout
//! - `markdown`, `html`: the two renderings; the data are the views of the turns, as JSON.
//! - `words`: the format of figures and times in both.

mod html;
mod markdown;
mod words;

use crate::cli::StoryFormat;
use rondo_runtime::sanitize;
use rondo_runtime::view::TurnView;
use rondo_types::TodoItem;
use serde_json::json;

/// A session.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Story {
    /// Id of the session.
    pub(crate) session: String,
    /// Title; may be empty.
    pub(crate) title: String,
    /// The directory it works in; may be empty.
    pub(crate) directory: String,
    /// Set for the session of a script.
    pub(crate) is_script: bool,
}

impl Story {
    /// Returns the text before the turns.
    pub(crate) fn head(&self, format: StoryFormat) -> String {
        match format {
            StoryFormat::Markdown => sanitize::plain(&markdown::head(self)),
            StoryFormat::Html => html::head(self),
            StoryFormat::Json => format!(
                "{{\"session\":{},\"title\":{},\"directory\":{},\"turns\":[",
                json!(self.session),
                json!(self.title),
                json!(self.directory)
            ),
        }
    }

    /// Returns the parts after the turns: the to-do list as it is now, and the sessions that calls started.
    pub(crate) fn tail(
        &self,
        format: StoryFormat,
        todo: &[TodoItem],
        children: &[String],
    ) -> String {
        let heading = match self.is_script {
            true => "Conversations",
            false => "Subagents",
        };
        match format {
            StoryFormat::Markdown => sanitize::plain(&markdown::tail(todo, heading, children)),
            StoryFormat::Html => html::tail(todo, heading, children),
            StoryFormat::Json => {
                let mut text = "]".to_owned();
                if !todo.is_empty() {
                    text += &format!(",\"todo\":{}", json!(todo));
                }
                if !children.is_empty() {
                    text += &format!(",\"children\":{}", json!(children));
                }
                text + "}\n"
            }
        }
    }
}

/// Returns a turn, formatted as the first one or as a later one.
pub(crate) fn shown(turn: &TurnView, format: StoryFormat, is_first: bool) -> String {
    match format {
        StoryFormat::Markdown => sanitize::plain(&markdown::turn(turn)),
        StoryFormat::Html => html::turn(turn),
        StoryFormat::Json => {
            let before = if is_first { "" } else { "," };
            let turn = serde_json::to_string(turn).unwrap_or_default();
            format!("{before}{turn}")
        }
    }
}

#[cfg(test)]
mod tests;
