//! Continues with other sessions, and changes how the one that is shown continues.

use super::Runner;
use super::effects::EffectResult;
use crate::app::{Effect, LISTED_MAX, Story};
use rondo_runtime::error::Result;
use rondo_runtime::service::{Cell, SessionHandle};
use rondo_runtime::sessions::LatestModels;
use rondo_runtime::settings::Settings;
use rondo_runtime::target::ModelTarget;
use rondo_runtime::weights::catalogue;
use rondo_runtime::{Layer, NoNotices, SessionOptions, SetupError, models, spec};
use rondo_types::SessionId;
use std::collections::HashMap;
use tokio::task::spawn_blocking;

/// Messages of a preview.
const PREVIEW_MESSAGES: usize = 6;
/// Files that `@` may name.
const FILES_MAX: usize = 20_000;

impl Runner {
    /// Does what is about sessions. Returns whether it was.
    pub(super) async fn of_sessions(&mut self, effect: &Effect) -> bool {
        let done = match effect {
            Effect::ForkOf(id) => self.fork_of(id).await,
            Effect::RunMode(mode) => {
                self.choose(mode.layer());
                Ok(())
            }
            Effect::Own { cell, is_shared } => self.own(cell.clone(), *is_shared),
            Effect::OpenShell => self.start_shell(),
            Effect::OpenPython => {
                self.start_python();
                Ok(())
            }
            _ => return false,
        };
        if let Err(error) = done {
            self.failed(&error);
        }
        self.is_stale = true;
        true
    }

    pub(super) fn show(&mut self, session: SessionHandle, note: Option<String>) {
        self.updates = session.subscribe_to_latest();
        self.attendance = Some(session.attend());
        self.is_behind = true;
        if let Some(shell) = self.session.take_shell() {
            session.lend_shell(&shell);
        }
        if let Some(python) = self.session.take_python() {
            session.lend_python(&python);
        }
        session.choose(self.chosen.clone());
        self.session = session;
        self.app.show_session();
        self.note_below = note;
    }

    /// Reads earlier turns of the session, if they are wanted.
    pub(super) fn read_earlier(&mut self) {
        self.app.passed(self.updates.turns_passed());
        let Some(turns) = self.app.wants_earlier() else {
            return;
        };
        self.is_stale = true;
        let (session, done) = (self.session.clone(), self.done.0.clone());
        tokio::spawn(async move {
            let take = |story: &mut Box<Story>, body| story.update(body);
            let read = session.earlier(turns, Box::default(), take).await;
            // Without the loop there is no receiver.
            let _ = done
                .send(EffectResult::Earlier(session.id().clone(), read))
                .await;
        });
    }

    /// Shows earlier turns, unless another session is shown by now.
    pub(super) async fn take_earlier(&mut self, id: &SessionId, read: Result<Box<Story>>) {
        if id != self.session.id() {
            return;
        }
        let story = match read {
            Ok(story) => Some(story),
            Err(error) => {
                self.failed(&error);
                None
            }
        };
        let effects = self.app.take_earlier(story);
        self.act(effects).await;
    }

    /// Goes on with the model that the session asked, unless the command line names one, as its next turn does.
    pub(super) fn keep_model(&mut self) {
        self.named = None;
        if let Err(error) = self.take_model() {
            self.failed(&error);
        }
        self.show_answers();
    }

    fn take_model(&mut self) -> Result<()> {
        self.settings.values.model.clone_from(&self.configured);
        let Some(info) = self.session.info()? else {
            return Ok(());
        };
        let Some(last) = LatestModels::last(self.session.store(), &info)? else {
            return Ok(());
        };
        let mut kept = self.settings.clone();
        let taken = spec::go_on_with(&last, &mut kept, &NoNotices);
        self.settings.values.model = kept.values.model.take();
        taken
    }

    /// Has a session that begins from the one at the screen ask what was chosen there.
    pub(super) fn carry_model(&mut self) {
        match self.named.clone() {
            Some(named) => self.session.set_model(&named),
            None => self.keep_model(),
        }
    }

    fn options(&self) -> SessionOptions {
        SessionOptions::in_directory(&self.settings.directory)
    }

    async fn fork_of(&mut self, id: &str) -> Result<()> {
        let session = self.service.find(id, self.options()).await?;
        let fork = session.fork().await?;
        let from = session.id();
        self.show(
            fork,
            Some(format!("a copy of `{from}`, which stays as it is")),
        );
        self.keep_model();
        Ok(())
    }

    pub(super) fn choose(&mut self, layer: Layer) {
        self.session.choose(layer.clone());
        layer.put_over(&mut self.chosen);
    }

    /// Runs a person's own cell, in a shell or an interpreter that is started for the first one.
    fn own(&mut self, cell: Cell, is_shared: bool) -> Result<()> {
        match &cell {
            Cell::Shell(_) => self.start_shell()?,
            Cell::Python(_) => self.start_python(),
        }
        let session = self.session.clone();
        self.beside(async move {
            let ended = match is_shared {
                true => session.cell(cell).await,
                false => session.private_cell(cell).await,
            };
            ended.map(drop)
        });
        Ok(())
    }

    /// Does what takes a while and changes nothing that is shown. Returns whether it was that.
    pub(super) fn of_lists(&self, effect: &Effect) -> bool {
        let (service, done) = (self.service.clone(), self.done.0.clone());
        let work: std::pin::Pin<Box<dyn Future<Output = Result<Option<EffectResult>>> + Send>> =
            match effect {
                Effect::List(words) => {
                    let words = words.clone();
                    Box::pin(async move {
                        let found = service.list(&words, LISTED_MAX).await?;
                        Ok(Some(EffectResult::Found(words, found)))
                    })
                }
                Effect::Preview(id) => {
                    let id = id.clone();
                    Box::pin(async move {
                        let messages = service.preview(&id, PREVIEW_MESSAGES).await?;
                        Ok(Some(EffectResult::Preview(id, messages)))
                    })
                }
                Effect::Rename { id, text, words } => {
                    let (id, text, words) = (id.clone(), text.clone(), words.clone());
                    Box::pin(async move {
                        service.rename(&id, &text).await?;
                        let found = service.list(&words, LISTED_MAX).await?;
                        Ok(Some(EffectResult::Found(words, found)))
                    })
                }
                Effect::Remove(id) => {
                    let id = id.clone();
                    Box::pin(async move {
                        service.remove(&id).await?;
                        Ok(Some(EffectResult::Note(format!("`{id}` was removed"))))
                    })
                }
                Effect::Models => {
                    let settings = self.settings.clone();
                    Box::pin(async move {
                        let found = spawn_blocking(move || models(&settings)).await;
                        Ok(Some(EffectResult::Models(found.unwrap_or_default())))
                    })
                }
                Effect::Files => {
                    let directory = self.settings.directory.clone();
                    Box::pin(async move {
                        let files = spawn_blocking(move || files(&directory)).await;
                        Ok(Some(EffectResult::Files(files.unwrap_or_default())))
                    })
                }
                _ => return false,
            };
        tokio::spawn(async move {
            let result = match work.await {
                Ok(Some(result)) => result,
                Ok(None) => return,
                Err(error) => EffectResult::Failed(Box::new(error)),
            };
            // Without the loop there is no receiver.
            let _ = done.send(result).await;
        });
        true
    }

    pub(super) fn failed(&mut self, error: &SetupError) {
        self.app.error(&error.line(), error.hint.as_deref());
    }
}

/// Lists the models of the providers that have a key or need none, and those that run on this machine.
fn models(settings: &Settings) -> Vec<String> {
    let mut usable: HashMap<String, bool> = HashMap::new();
    let mut is_usable = |name: &str| {
        let provider = name.split('/').next().unwrap_or_default();
        if let Some(known) = usable.get(provider) {
            return *known;
        }
        let mut settings = settings.clone();
        settings.values.model = Some(name.to_owned());
        let target = ModelTarget::make(&settings);
        let is_usable = target.is_ok_and(|it| it.check_key(&settings).is_ok());
        usable.insert(provider.to_owned(), is_usable);
        is_usable
    };
    let local = catalogue().unwrap_or_default().into_iter();
    let local = local.map(|it| format!("local/{}", it.name));
    let known = models::names(&settings.values.models);
    let all = known.into_iter().filter(|it| is_usable(it));
    let mut all: Vec<String> = all.chain(local).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Lists the files beneath a directory that no `.gitignore` leaves out, as paths from there.
fn files(directory: &std::path::Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(directory).build();
    let files = walk.filter_map(std::result::Result::ok);
    let files = files.filter(|it| it.file_type().is_some_and(|it| it.is_file()));
    let names = files.filter_map(|it| {
        let path = it.path().strip_prefix(directory).ok()?;
        path.to_str().map(str::to_owned)
    });
    let mut names: Vec<String> = names.take(FILES_MAX).collect();
    names.sort_unstable();
    names
}
