use crate::cli::StoryFormat;
use crate::error::Result;
use crate::render::sanitize;
use crate::sessions::{self, failed};
use crate::story::{self, Story};
use rondo_journal::Store;

/// Returns what happened in a session.
///
/// # Errors
/// When there is no such session, or it is damaged.
pub(super) fn show(store: &Store, session: &str, format: StoryFormat) -> Result<String> {
    let info = sessions::find(store, session)?;
    let records = store.load(&info.id).map_err(failed)?;
    let story = Story {
        session: info.id.to_string(),
        title: info.title,
        directory: info.directory,
        ..Story::of(&records)
    };
    Ok(match format {
        StoryFormat::Markdown => sanitize::plain(&story::markdown(&story)),
        StoryFormat::Html => story::html(&story),
        StoryFormat::Json => {
            let mut line = serde_json::to_string(&story).unwrap_or_default();
            line.push('\n');
            line
        }
    })
}
