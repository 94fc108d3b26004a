//! Folders in which commands run in the sandbox without a question: the user says so at a question, and their own
//! settings keep it (`sandboxed_folders`).
//!
//! In such a folder the setting `approval` is `auto` unless something says otherwise: the command line, the environment,
//! or a project that is trusted. The choice counts only if the whole sandbox holds.

use crate::confined;
use crate::env::Env;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::notices::Notices;
use crate::paths::Paths;
use crate::settings::Settings;
use crate::table::Layer;
use crate::user_file::UserFile;
use crate::values::{ApprovalMode, SandboxChoice};
use async_trait::async_trait;
use rondo_core::Approver;
use rondo_core::ports::{Gate, GateRequest, QuestionReply, Terms, Verdict};
use rondo_sandbox::SandboxSpec;
use rondo_types::{Grant, GrantScope, Question};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::task::spawn_blocking;

/// The name of the layer of settings in such a folder.
pub(crate) const SOURCE: &str = "sandboxed_folders";
/// The command that takes the choice back.
pub const UNDO: &str = "rondo policy sandbox --revoke";

/// Returns the folders of a list that hold a directory, without links in their paths.
#[must_use]
pub fn covering(folders: &[PathBuf], directory: &Path) -> Vec<PathBuf> {
    let Ok(directory) = directory.canonicalize() else {
        return Vec::new();
    };
    let absolute = folders.iter().filter(|it| it.is_absolute());
    let covers = |it: &&PathBuf| it.canonicalize().is_ok_and(|it| directory.starts_with(it));
    absolute.filter(covers).cloned().collect()
}

/// Returns a folder that can be chosen, without links in its path.
///
/// # Errors
/// When it does not exist, or the home directory is in it.
pub fn folder(directory: &Path, settings: &Settings) -> Result<PathBuf> {
    let failed = |err| {
        let what = format!("failed to find `{}`", directory.display());
        SetupError::because(SetupErrorKind::Input, what, err)
    };
    let folder = directory.canonicalize().map_err(failed)?;
    let home = settings.env.get("HOME").map(Path::new);
    if folder.parent().is_none() {
        let message = "a sandbox around `/` would protect nothing";
        return Err(SetupError::new(SetupErrorKind::Usage, message));
    }
    confined::refuse_home(home, std::slice::from_ref(&folder))?;
    Ok(folder)
}

/// Returns the layer of settings of a folder that the user chose; none if it is no such folder, or if the choice does not
/// count with these values.
pub(crate) fn layer(
    directory: &Path,
    (user, flags): (&Layer, &Layer),
    values: &Layer,
    env: &Env,
) -> Option<Layer> {
    let folders = flags.sandboxed_folders.as_ref();
    let folders = folders.or(user.sandboxed_folders.as_ref())?;
    let is_chosen = !covering(folders, directory).is_empty();
    let is_possible = || sandboxable(directory, values, env).is_some() && confined::is_full();
    (is_chosen && is_possible()).then(|| Layer {
        approval: Some(ApprovalMode::Auto),
        ..Layer::default()
    })
}

/// Returns a directory, without links in its path, if commands in it can be in the sandbox with these values and the system
/// enforces it.
fn sandboxable(directory: &Path, values: &Layer, env: &Env) -> Option<PathBuf> {
    let is_off = matches!(
        values.sandbox,
        Some(SandboxChoice::Off | SandboxChoice::ReadOnly)
    );
    let added = values.add_dirs.iter().flatten();
    let added = added.filter_map(|it| directory.join(it).canonicalize().ok());
    let real = directory.canonicalize().ok()?;
    let all: Vec<PathBuf> = added.chain([real.clone()]).collect();
    let home = env.get("HOME").map(Path::new);
    let is_possible = !is_off
        && values.yolo != Some(true)
        && all.iter().all(|it| it.parent().is_some())
        && !confined::hold_home(home, &all);
    is_possible.then_some(real)
}

/// Returns the folder that a question may offer to choose; `None` if something else decides about approval.
pub(crate) fn may_be_offered(settings: &Settings) -> Option<String> {
    let values = &settings.values;
    let is_open = match values.approval {
        None => true,
        // In the user's own file it is meant for all folders.
        Some(ApprovalMode::Ask) => settings.is_user_setting("approval"),
        Some(ApprovalMode::Auto | ApprovalMode::Deny | ApprovalMode::Park) => false,
    };
    let is_open = is_open
        && values.plan != Some(true)
        && settings
            .flags()
            .is_none_or(|it| it.sandboxed_folders.is_none());
    if !is_open {
        return None;
    }
    let folder = sandboxable(&settings.directory, values, &settings.env)?;
    folder.to_str().map(str::to_owned)
}

/// Builds the sandbox of an offer.
type Prepare = dyn Fn() -> Result<SandboxSpec> + Send + Sync;

/// Offer in questions about commands of a folder: to run them in the sandbox from now on. Clones share the choice.
#[derive(Clone)]
pub struct SandboxOffer(Arc<FolderOffer>);

struct FolderOffer {
    folder: String,
    paths: Paths,
    prepare: Box<Prepare>,
    /// None inside if it cannot be built.
    prepared: OnceLock<Option<SandboxSpec>>,
    /// Set once the user chose it.
    chosen: Arc<OnceLock<SandboxSpec>>,
}

impl SandboxOffer {
    pub(crate) fn new(
        folder: String,
        paths: &Paths,
        prepare: impl Fn() -> Result<SandboxSpec> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(FolderOffer {
            folder,
            paths: paths.clone(),
            prepare: Box::new(prepare),
            prepared: OnceLock::new(),
            chosen: Arc::default(),
        }))
    }

    /// Returns the sandbox of commands from the choice on.
    pub(crate) fn chosen(&self) -> Arc<OnceLock<SandboxSpec>> {
        Arc::clone(&self.0.chosen)
    }

    /// Returns whether the user chose it.
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        self.0.chosen.get().is_some()
    }

    fn is_of(&self, grant: &Grant) -> bool {
        matches!(&grant.scope, GrantScope::Sandbox { folder } if *folder == self.0.folder)
    }

    /// Returns the grant that a question offers; `None` if the sandbox does not hold here as a whole. May start a process.
    fn grant(&self) -> Option<Grant> {
        let prepare = || {
            confined::is_full()
                .then(|| (self.0.prepare)().ok())
                .flatten()
        };
        self.0.prepared.get_or_init(prepare).as_ref()?;
        Some(Grant {
            scope: GrantScope::Sandbox {
                folder: self.0.folder.clone(),
            },
            // A command in the sandbox sends nothing out.
            despite_outside_text: true,
        })
    }

    /// Puts commands into the sandbox from now on, and keeps that in the user's settings.
    fn choose(&self, notices: &dyn Notices) {
        let Some(Some(spec)) = self.0.prepared.get() else {
            return;
        };
        if self.0.chosen.set(spec.clone()).is_err() {
            return;
        }
        let folder = &self.0.folder;
        let kept = UserFile::read(&self.0.paths).and_then(|mut file| {
            file.sandbox(Path::new(folder))?;
            file.save()
        });
        notices.note(&match kept {
            Ok(()) => format!(
                "commands in `{folder}` run in the sandbox without a question from now on; `{UNDO}` undoes it"
            ),
            Err(error) => format!(
                "commands in `{folder}` run in the sandbox until this turn ends; it could not be kept: {}",
                error.line()
            ),
        });
    }
}

/// A gate whose questions about commands offer the sandbox, and that asks about none of these once it was chosen.
pub(crate) struct SandboxGate {
    /// Decides until then, and about everything that runs no command.
    pub(crate) asks: Arc<dyn Gate>,
    /// Decides about commands from then on.
    pub(crate) sandboxed: Arc<dyn Gate>,
    pub(crate) offer: SandboxOffer,
    pub(crate) notices: Arc<dyn Notices>,
}

fn runs_command(request: &GateRequest) -> bool {
    request.spec.kind.command_line(&request.arguments).is_some()
}

#[async_trait]
impl Gate for SandboxGate {
    async fn check(&self, request: &GateRequest) -> Verdict {
        match self.offer.is_chosen() && runs_command(request) {
            true => self.sandboxed.check(request).await,
            false => self.asks.check(request).await,
        }
    }

    async fn terms(&self, request: &GateRequest) -> Terms {
        if self.offer.is_chosen() || !runs_command(request) {
            return self.asks.terms(request).await;
        }
        let mut terms = self.asks.terms(request).await;
        if self.sandboxed.check(request).await == Verdict::Allow {
            let offer = self.offer.clone();
            let grant = spawn_blocking(move || offer.grant()).await;
            terms.offers.extend(grant.ok().flatten());
        }
        terms
    }

    fn remember(&self, grant: &Grant) {
        match self.offer.is_of(grant) {
            true => self.offer.choose(&*self.notices),
            false => self.asks.remember(grant),
        }
    }
}

/// Asks the user, unless they chose the sandbox while a question waited that offered it.
pub(crate) struct SandboxApprover {
    pub(crate) inner: Arc<dyn Approver>,
    pub(crate) offer: SandboxOffer,
}

#[async_trait]
impl Approver for SandboxApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let offers = &question.offers;
        match self.offer.is_chosen() && offers.iter().any(|it| self.offer.is_of(it)) {
            true => QuestionReply::approved(question, "the sandbox that was chosen"),
            false => self.inner.ask(question).await,
        }
    }
}

#[cfg(test)]
mod tests;
