//! Memories of a session: their locations, their search, and the excerpt at its beginning.

use crate::embedded;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::paths::Paths;
use crate::project;
use crate::providers::LOCAL;
use crate::sessions;
use crate::settings::Settings;
use crate::target::ModelTarget;
use crate::transport;
use crate::weights::{Store, WeightsSource, catalogue};
use async_trait::async_trait;
use rondo_context::{MemoryFile, MemorySource};
use rondo_core::Tool;
use rondo_core::ToolInvocation;
use rondo_core::clock::Clock;
use rondo_core::ports::{Embedder, EmbeddingUse, InterruptedCall, Reconciled};
use rondo_core::redact::Secrets;
use rondo_http::HttpEmbedder;
use rondo_memory::{Author, NewMemory, Options, Origin, Outside, SaveMemory, SearchMemory};
pub use rondo_memory::{Memories, Memory, MemoryError, Scope};
use rondo_types::{ErrorClass, ModelError, SessionId, TimeMs, ToolKind, ToolOutcome, ToolSpec};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The directory of the index in the cache.
const INDEX: &str = "memory/index.db";
/// The index of a workspace's memories, in the workspace.
const INDEX_OF_WORKSPACE: &str = "memory/.index.db";

/// The value of `embedding_model` that turns vectors off.
const NO_VECTORS: &str = "none";

/// Returns the memories of the user, of the project that the working directory is in, and of a session's chat.
///
/// # Errors
/// When `embedding_model` names no known provider, or weights that this build has no engine for.
pub fn memories(
    settings: &Settings,
    secrets: &Secrets,
    session: Option<&SessionId>,
) -> Result<Memories> {
    memories_of_turn(settings, secrets, session, None)
}

/// Returns the same memories for a turn whose conversation is sent to this model's provider: its embedding model may be
/// used without a setting.
pub(crate) fn memories_of_turn(
    settings: &Settings,
    secrets: &Secrets,
    session: Option<&SessionId>,
    asked: Option<&ModelTarget>,
) -> Result<Memories> {
    let directory = &settings.directory;
    let project = project::folder_of(directory).unwrap_or_else(|_| directory.clone());
    let is_kept = settings.values.ephemeral != Some(true);
    Ok(Memories::new(Options {
        data: Some(settings.paths.data.clone()),
        project: Some(project),
        session: session.filter(|_| is_kept).cloned(),
        index: Some(settings.paths.cache.join(INDEX)),
        secrets: secrets.clone(),
        embedder: embedder(settings, asked)?,
    }))
}

/// The tool that saves memories of a workspace.
pub(crate) const WRITE_MEMORY: &str = "write_memory";
pub(crate) use rondo_memory::SEARCH_MEMORY;

/// Returns the memories that are kept in a chat assistant's workspace, and of a session's chat.
///
/// # Errors
/// When `embedding_model` names no known provider, or weights that this build has no engine for.
pub(crate) fn of_workspace(
    directory: &Path,
    settings: &Settings,
    secrets: &Secrets,
    session: &SessionId,
    asked: &ModelTarget,
) -> Result<Memories> {
    Ok(Memories::new(Options {
        data: Some(directory.to_owned()),
        project: None,
        session: Some(session.clone()),
        index: Some(directory.join(INDEX_OF_WORKSPACE)),
        secrets: secrets.clone(),
        embedder: embedder(settings, Some(asked))?,
    }))
}

/// Returns the memories in a workspace that a session which began at a time is shown.
#[must_use]
pub fn of_workspace_at_start(directory: &Path, began: TimeMs) -> Vec<MemoryFile> {
    let memories = Memories::new(Options {
        data: Some(directory.to_owned()),
        ..Options::default()
    });
    let (files, problems) = at_start(&memories, began);
    for problem in problems {
        tracing::warn!(problem, "memories are left out");
    }
    files
}

/// Returns the tools over the memories of a workspace.
pub(crate) fn tools_of_workspace(memories: &Memories, outside: Outside) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(SearchMemory::new(memories.clone())),
        Arc::new(WriteMemory(SaveMemory::new(memories.clone(), outside))),
    ]
}

/// The tool that saves memories, under the name that it has in a workspace.
struct WriteMemory(SaveMemory);

#[async_trait]
impl Tool for WriteMemory {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: WRITE_MEMORY.to_owned(),
            // Its file is not a file of the turn's: the gate judges it by its name.
            kind: ToolKind::Other,
            ..self.0.spec()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        self.0.call(invocation).await
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        self.0.reconcile(call).await
    }
}

/// Returns whether memories are used at all.
#[must_use]
pub fn is_on(settings: &Settings) -> bool {
    settings.values.memory != Some(false)
}

/// Saves what the user asks to remember, and returns the result in a line.
///
/// # Errors
/// When the text is empty or too long, or the disk fails.
pub fn remember(
    memories: &Memories,
    text: &str,
    scope: Scope,
    session: Option<&SessionId>,
) -> Result<String> {
    let origin = Origin {
        session: session.map(ToString::to_string),
        ..Origin::new(Author::User, Clock::system().now())
    };
    let text = text.to_owned();
    let saved = memories.save(&NewMemory {
        text,
        scope,
        origin,
    })?;
    let id = saved.memory.id.get(..8).unwrap_or_default();
    Ok(match saved.is_new {
        true => format!("remembered as {id} in {}", saved.path.display()),
        false => format!("known already as {id} in {}", saved.path.display()),
    })
}

/// Finds the session whose chat is meant: an id, a prefix of one, or `latest`.
///
/// # Errors
/// When none or several match.
pub fn session(settings: &Settings, name: &str) -> Result<SessionId> {
    let store = sessions::open_to_read(settings)?;
    Ok(sessions::find(&store, name)?.id)
}

/// Removes the memories of a chat whose session was removed. If they cannot be removed, they stay.
pub fn forget_chat(paths: &Paths, session: &SessionId) {
    if let Err(err) = Memories::forget_chat(&paths.data, session) {
        tracing::warn!(
            session = session.as_str(),
            error = err.line(),
            "memories stay"
        );
    }
}

/// Returns the tools over memories.
pub(crate) fn tools(memories: &Memories, outside: Outside) -> [Arc<dyn Tool>; 2] {
    [
        Arc::new(SearchMemory::new(memories.clone())),
        Arc::new(SaveMemory::new(memories.clone(), outside)),
    ]
}

/// Returns the memories that a session is shown when it begins, and why files are left out.
pub(crate) fn at_start(memories: &Memories, began: TimeMs) -> (Vec<MemoryFile>, Vec<String>) {
    let (files, problems) = memories.at_start(began);
    let shown = files.into_iter().map(|file| MemoryFile {
        path: file.path.display().to_string(),
        text: file.text,
        source: match file.scope {
            Scope::Project => MemorySource::Project,
            Scope::User | Scope::Chat => MemorySource::User,
        },
    });
    (shown.collect(), problems)
}

impl From<MemoryError> for SetupError {
    fn from(error: MemoryError) -> Self {
        let kind = match &error {
            MemoryError::Empty
            | MemoryError::TooLong { .. }
            | MemoryError::EmptyQuery
            | MemoryError::QueryTooLong { .. }
            | MemoryError::BadName { .. }
            | MemoryError::NoScope { .. } => SetupErrorKind::Usage,
            MemoryError::Unknown { .. } | MemoryError::Ambiguous { .. } => SetupErrorKind::Input,
            _ => SetupErrorKind::Other,
        };
        let hint = match &error {
            MemoryError::Unknown { .. } => Some(
                "`rondo memory list` shows the ids; at least 4 of their digits name a memory, and they change when its text is edited",
            ),
            MemoryError::Ambiguous { .. } => Some("give more digits of the id"),
            MemoryError::NotRegular { .. } => Some("move the file itself to that place"),
            MemoryError::TooLong { .. } => {
                Some("say it shorter, or write it into a file of the project")
            }
            _ => None,
        };
        let error = Self::caused(kind, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

fn embedder(settings: &Settings, asked: Option<&ModelTarget>) -> Result<Option<Arc<dyn Embedder>>> {
    let target = match settings.values.embedding_model.as_deref() {
        Some(NO_VECTORS) => None,
        Some(name) => Some(ModelTarget::named(name, settings)?),
        None => match weights_here(settings)? {
            Some(target) => Some(target),
            None => asked.and_then(of_same_provider),
        },
    };
    let Some(target) = target else {
        return Ok(None);
    };
    if let Some(wanted) = &target.weights {
        return embedded::embedder(&target, wanted, settings).map(Some);
    }
    Ok(Some(Arc::new(ProviderEmbedder {
        name: target.full_name(),
        target,
        settings: settings.clone(),
        connected: OnceCell::new(),
    })))
}

/// Returns the model of the built-in catalog whose weights are on this machine, the default one first. Nothing is
/// downloaded.
fn weights_here(settings: &Settings) -> Result<Option<ModelTarget>> {
    if !cfg!(feature = "local") {
        return Ok(None);
    }
    let known = catalogue()?.into_iter();
    let known = known.map(|model| WeightsSource::Known(Box::new(model)));
    let store = Store::of(settings);
    let mut all = WeightsSource::default(settings)?.into_iter().chain(known);
    let Some(wanted) = all.find(|it| store.find(it).is_some()) else {
        return Ok(None);
    };
    let target = ModelTarget::named(&format!("{LOCAL}/{}", wanted.name()), settings)?;
    Ok(Some(target).filter(|it| it.weights.is_some()))
}

/// Returns the embedding model at the address of a model that is asked anyway. Another address, such as that of
/// `base_url`, is a server of which nothing is known.
fn of_same_provider(asked: &ModelTarget) -> Option<ModelTarget> {
    let model = asked.provider.embedding_model.clone()?;
    let is_own_address = asked.provider.base_url.as_ref() == Some(&asked.base_url);
    (asked.weights.is_none() && is_own_address).then(|| ModelTarget {
        model,
        ..asked.clone()
    })
}

/// A provider's model that makes vectors, connected when it is first used: its key may be printed by a command.
struct ProviderEmbedder {
    name: String,
    target: ModelTarget,
    settings: Settings,
    connected: OnceCell<HttpEmbedder>,
}

impl ProviderEmbedder {
    async fn connect(&self) -> Result<HttpEmbedder> {
        let key = self.target.key(&self.settings).await?;
        let dialect = self.target.dialect();
        let model = transport::http_model(&self.target, key, dialect, false, &self.settings)?;
        Ok(HttpEmbedder::new(model))
    }
}

#[async_trait]
impl Embedder for ProviderEmbedder {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn embed(
        &self,
        texts: &[String],
        used: EmbeddingUse,
    ) -> std::result::Result<Vec<Vec<f32>>, ModelError> {
        let connected = self.connected.get_or_try_init(|| self.connect()).await;
        let connected =
            connected.map_err(|err| ModelError::new(ErrorClass::BadRequest, err.line()))?;
        connected.embed(texts, used).await
    }
}
