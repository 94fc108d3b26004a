//! Sessions: begin one, list them, go back, go on elsewhere.

use crate::commands::session_table;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::repl::{After, Repl};
use rondo_core::clock::Clock;
use rondo_core::ports::Seq;
use rondo_journal::SessionInfo;
use rondo_runtime::plan::other_answers;
use rondo_runtime::sessions::{self, LastAsked, failed, new_session};
use rondo_types::SessionId;

/// Sessions that are listed.
const LISTED_MAX: usize = 20;
/// The kind of a turn's first record.
const TURN_STARTED: &str = "turn_started";

impl Repl {
    pub(super) fn clear(&mut self) -> Result<()> {
        self.talk.clear();
        self.print("a new conversation\n")
    }

    pub(super) async fn compact(&mut self, focus: &str) -> Result<After> {
        match self.talk.compact(focus).await? {
            Some(over) => Ok(self.turn_over(over)),
            None => Ok(After::Prompt),
        }
    }

    pub(super) fn show_sessions(&mut self) -> Result<()> {
        let columns = self.talk.output.terminal_columns();
        let store = self.talk.store()?;
        let found = store.sessions(LISTED_MAX)?;
        let shown = session_table(store, &found, columns);
        self.print(&shown)
    }

    pub(super) async fn resume(&mut self, id: &str) -> Result<After> {
        if !id.is_empty() {
            let info = sessions::find(self.talk.store()?, id)?;
            self.check_directory(&info)?;
            let last = LastAsked::last(self.talk.store()?, &info)?;
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
            None => Err(CliError::new(Exit::NoSession, "no turn was cut off")
                .hint("`/resume ID` goes on with another session, `/sessions` lists them")),
        }
    }

    /// Says where a session worked, where that is not here: whoever works in the shell stays where they are.
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
        if !rest.is_empty() {
            let error = CliError::new(Exit::Usage, "`/fork` copies the session as it is now");
            return Err(error.hint("`rondo fork ID --at STEP` goes back to a step"));
        }
        let info = self.current_info()?;
        let names = match &self.talk.python {
            Some(python) => python.global_names().await.unwrap_or_default(),
            None => Vec::new(),
        };
        let forked = |id: &str, turns: &str| format!("forked as `{id}` ({turns})");
        if self.go_on_in_fork(&info, info.head, forked).await? {
            self.report_gone(names).await?;
        }
        Ok(())
    }

    /// Goes on from before the last turn. Nothing is taken out of the session: a fork leaves it be.
    pub(super) async fn undo(&mut self) -> Result<()> {
        let info = self.current_info()?;
        let mut last = Seq(0);
        let store = self.talk.store()?;
        store.each::<CliError>(&info.id, Seq(1), |entry| {
            if entry.kind() == TURN_STARTED {
                last = entry.seq;
            }
            Ok(())
        })?;
        match last.0.checked_sub(1) {
            None => Err(CliError::new(Exit::NoSession, "nothing was asked yet")),
            Some(0) => {
                self.talk.park_python()?;
                self.clear()
            }
            Some(before) => {
                let named = |id: &str, turns: &str| format!("session `{id}` of {turns}");
                let gone_on = self.go_on_in_fork(&info, Seq(before), named).await;
                gone_on.map(drop)
            }
        }
    }

    /// Goes on in a fork, and carries what ran in the interpreter up to there into one of the fork's
    /// own, by running it again. Returns whether there is such an interpreter.
    async fn go_on_in_fork(
        &mut self,
        info: &SessionInfo,
        at: Seq,
        named: impl Fn(&str, &str) -> String,
    ) -> Result<bool> {
        let mut here = self.talk.sorted_cells()?.here;
        let all = here.len();
        here.retain(|it| it.seq <= at);
        let later = all - here.len();
        let now = Clock::system().now();
        let session = new_session(now);
        let store = self.talk.store()?;
        store.fork(&info.id, at, &session, now).map_err(failed)?;
        let fork = store.session(&session).map_err(failed)?;
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
            let done = self.run_again(&here, false).await?;
            self.report(&here, &done)?;
        }
        Ok(true)
    }

    fn current_info(&mut self) -> Result<SessionInfo> {
        let current = self.talk.current();
        let id: Option<SessionId> = current.map(|it| it.session.clone());
        let Some(id) = id else {
            return Err(CliError::new(Exit::NoSession, "nothing was said yet"));
        };
        if self.talk.settings.values.ephemeral == Some(true) {
            let message = "nothing is kept of this session";
            return Err(CliError::new(Exit::NoSession, message));
        }
        Ok(self.talk.store()?.session(&id)?)
    }
}
