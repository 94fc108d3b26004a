//! Slash commands on sessions: clear, compact, list, resume, fork and undo.

use crate::commands::session_table;
use crate::error::{CliError, Result};
use crate::repl::{After, Repl, named_session};
use rondo_core::session_store::SessionInfo;
use rondo_runtime::service::SessionHandle;
use rondo_runtime::sessions::{self, LastAsked};
use rondo_runtime::spec::other_answers;
use rondo_tui::prompt::slash::{check_fork, nothing_cut_off};

/// Sessions that are listed.
const LISTED_MAX: usize = 20;

impl Repl {
    pub(super) fn clear(&mut self) -> Result<()> {
        self.talk.clear()?;
        self.print("a new conversation\n")
    }

    pub(super) async fn compact(&mut self, focus: &str) -> Result<After> {
        let over = self.talk.compact(focus).await?;
        Ok(self.turn_over(over))
    }

    pub(super) fn show_sessions(&mut self) -> Result<()> {
        let columns = self.talk.output.terminal_columns();
        let store = self.talk.handle.store();
        let found = store.sessions(LISTED_MAX)?;
        let shown = session_table(store, &found, columns);
        self.print(&shown)
    }

    pub(super) async fn resume(&mut self, id: &str) -> Result<After> {
        if !id.is_empty() {
            let info = sessions::find(self.talk.handle.store(), id)?;
            self.check_directory(&info)?;
            let last = LastAsked::last(self.talk.handle.store(), &info)?;
            self.take(&info)?;
            self.tell_own_directory(&info);
            let other = last.and_then(|last| other_answers(&last, &self.talk.settings));
            if let Some(note) = other {
                self.talk.output.note(&note);
            }
            self.tell_cells()?;
            return Ok(After::Prompt);
        }
        match self.talk.resume().await? {
            Some(over) => Ok(self.turn_over(over)),
            None => Err(nothing_cut_off().into()),
        }
    }

    /// Says where a session worked, where that is not here: the shell stays where it is.
    fn tell_own_directory(&self, info: &SessionInfo) {
        let here = &self.talk.settings.directory;
        if let Ok(Some(own)) = sessions::own_directory(info, here) {
            let own = own.display();
            self.talk.output.note(&format!(
                "the session worked in `{own}` and goes on here: `!cd {own}` goes there"
            ));
        }
    }

    /// Refuses a session whose directory is gone, unless the command line named one: what it does would be
    /// done here.
    fn check_directory(&self, info: &SessionInfo) -> Result<()> {
        let here = &self.talk.settings.directory;
        let own = match self.names_directory {
            true => Ok(None),
            false => sessions::own_directory(info, here),
        };
        let id = &info.id;
        own.map(drop).map_err(|error| {
            CliError::from(error).hint(format!(
                "`rondo repl --session {id} -C DIR` goes on with it in another directory"
            ))
        })
    }

    pub(super) async fn fork(&mut self, rest: &str) -> Result<()> {
        check_fork(rest)?;
        let names = match &self.talk.python {
            Some(python) => python.session().global_names().await.unwrap_or_default(),
            None => Vec::new(),
        };
        let forked = |id: &str, turns: &str| format!("forked as `{id}` ({turns})");
        let fork = self.talk.handle.fork().await?;
        if self.go_on_in_fork(&fork, forked).await? {
            self.report_gone(names).await?;
        }
        Ok(())
    }

    /// Goes on from before the last turn. Nothing is taken out of the session: a fork leaves it be.
    pub(super) async fn undo(&mut self) -> Result<()> {
        match self.talk.handle.before_latest_turn().await? {
            None => {
                self.talk.park_python()?;
                self.clear()
            }
            Some(fork) => self.go_on_in_fork(&fork, named_session).await.map(drop),
        }
    }

    /// Goes on in a fork, and carries what ran in the interpreter up to there into one of the fork's
    /// own, by running it again. Returns whether there is such an interpreter.
    async fn go_on_in_fork(
        &mut self,
        fork: &SessionHandle,
        named: impl Fn(&str, &str) -> String,
    ) -> Result<bool> {
        let Some(fork) = fork.info()? else {
            return Ok(false);
        };
        self.talk.hand_over();
        let mut here = self.talk.handle.sorted_cells()?.here;
        let all = here.len();
        here.retain(|it| it.seq <= fork.head);
        let later = all - here.len();
        self.take_as(&fork, named)?;
        if all == 0 {
            self.tell_cells()?;
            return Ok(false);
        }
        if later > 0 {
            let note = format!("what {later} later Python cells left is taken back too");
            self.talk.output.note(&note);
        }
        if !here.is_empty() {
            self.run_again(&here).await?;
        }
        Ok(true)
    }
}
