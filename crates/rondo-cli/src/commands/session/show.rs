//! `rondo session show`.

use crate::cli::StoryFormat;
use crate::commands::report::write_failed;
use crate::error::{CliError, Result};
use crate::output::Output;
use crate::story::{self, Story};
use rondo_core::storage::Store;
use rondo_runtime::sessions;
use rondo_runtime::view::{Fold, TurnView};

/// Prints what happened in a session, turn by turn.
///
/// # Errors
/// When there is no such session, or it is damaged: then what came before is printed.
pub(super) fn show(
    store: &Store,
    session: &str,
    format: StoryFormat,
    output: &Output,
) -> Result<()> {
    let info = sessions::find(store, session)?;
    let story = Story {
        session: info.id.to_string(),
        title: info.title,
        directory: info.directory,
        is_script: sessions::script_of(store, &info.id)?.is_some(),
    };
    let print = |text: &str| {
        let shown = match format {
            StoryFormat::Markdown => output.stdout(text),
            StoryFormat::Json => output.json(text),
            StoryFormat::Html => output.styled(text),
        };
        shown.map_err(write_failed)
    };
    print(&story.head(format))?;
    let mut is_first = true;
    let mut tell = |turn: TurnView| {
        let text = story::shown(&turn, format, is_first);
        is_first = false;
        print(&text)
    };
    let mut fold = Fold::default();
    store.records::<CliError>(&info.id, |record| {
        fold.record(&record).map_or(Ok(()), &mut tell)
    })?;
    fold.end().map_or(Ok(()), &mut tell)?;
    let todo = store.history(&info.id)?.todo().to_vec();
    let children = store.children(&info.id, usize::MAX)?;
    let children: Vec<String> = children.iter().map(|it| it.id.to_string()).collect();
    print(&story.tail(format, &todo, &children))
}
