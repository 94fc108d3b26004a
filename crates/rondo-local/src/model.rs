//! The embedded model behind the port of all models.

use crate::engine::{CpuEngine, Engine};
use crate::error::LocalError;
use crate::prompt_cache::PromptCache;
use crate::worker::{self, EVENTS_MAX, Event, JOBS_MAX, Job};
use futures_util::stream;
use rondo_core::{Model, ModelStream};
use rondo_types::{ErrorClass, ModelError, ModelInfo, ModelRequest, Origin, Price};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Tokens that a sequence may have unless the caller says otherwise. Longer ones fit the models,
/// but take minutes and half a gigabyte more on the processors this is meant for.
pub const CONTEXT_TOKENS_MAX: usize = 8_192;

/// Which weights to load, and as what.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The GGUF file.
    pub path: PathBuf,
    /// The model's name, for its origin.
    pub name: String,
    /// The bound on a sequence, in tokens.
    pub context_tokens_max: usize,
    /// The directory in which the state of prompts' beginnings is kept for other processes, at most
    /// 256 MiB in 32 files; none is kept without.
    pub prompt_cache: Option<PathBuf>,
}

impl LocalOptions {
    /// Builds options for a file, with the usual context and without a prompt cache.
    pub fn new(path: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            name: name.into(),
            context_tokens_max: CONTEXT_TOKENS_MAX,
            prompt_cache: None,
        }
    }
}

/// A model that answers in this process.
///
/// It computes on threads of its own, one reply after the other. Dropping it ends them after the
/// token or chunk they are at.
pub struct LocalModel {
    info: ModelInfo,
    jobs: mpsc::Sender<Job>,
}

impl LocalModel {
    /// Starts a model over a file, which is loaded when the model is first asked; a failure to load
    /// every later request is told it.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(options: LocalOptions) -> Result<Self, LocalError> {
        let (name, context) = (options.name, options.context_tokens_max);
        let (path, cache) = (options.path, options.prompt_cache);
        Self::begin(&name, context, cache, move || {
            Ok(Box::new(CpuEngine::load(&path, context)?))
        })
    }

    /// Starts a model over any engine; `load` runs on the model's own thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn with_engine(
        name: &str,
        context_tokens_max: usize,
        load: impl FnOnce() -> Result<Box<dyn Engine>, LocalError> + Send + 'static,
    ) -> Result<Self, LocalError> {
        Self::begin(name, context_tokens_max, None, load)
    }

    fn begin(
        name: &str,
        context_tokens_max: usize,
        cache: Option<PathBuf>,
        load: impl FnOnce() -> Result<Box<dyn Engine>, LocalError> + Send + 'static,
    ) -> Result<Self, LocalError> {
        let cache = cache.map(PromptCache::in_directory);
        let (jobs_tx, jobs_rx) = mpsc::channel(JOBS_MAX);
        std::thread::Builder::new()
            .name("rondo-local".to_owned())
            .spawn(move || worker::run(load, cache, jobs_rx))
            .map_err(LocalError::Thread)?;
        Ok(Self {
            info: info(name, context_tokens_max),
            jobs: jobs_tx,
        })
    }
}

fn info(name: &str, context_tokens_max: usize) -> ModelInfo {
    ModelInfo {
        origin: Origin {
            dialect: "local".to_owned(),
            provider: "local".to_owned(),
            model: name.to_owned(),
        },
        streaming: true,
        price: Some(Price::default()),
        context_tokens: u64::try_from(context_tokens_max).ok(),
    }
}

impl Model for LocalModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let first = State::Asking {
            jobs: self.jobs.clone(),
            request,
        };
        Box::pin(stream::unfold(first, next))
    }
}

/// How far a reply is.
enum State {
    Asking {
        jobs: mpsc::Sender<Job>,
        request: Arc<ModelRequest>,
    },
    Reading {
        events: mpsc::Receiver<Event>,
        finished: bool,
    },
    Ended,
}

async fn next(state: State) -> Option<(Event, State)> {
    let (mut events, finished) = match state {
        State::Ended => return None,
        State::Reading { events, finished } => (events, finished),
        State::Asking { jobs, request } => {
            let (reply, events) = mpsc::channel(EVENTS_MAX);
            if jobs.send(Job { request, reply }).await.is_err() {
                return Some((Err(thread_ended()), State::Ended));
            }
            (events, false)
        }
    };
    match events.recv().await {
        Some(Ok(event)) => {
            let finished = finished || matches!(event, rondo_types::ModelEvent::Finished { .. });
            Some((Ok(event), State::Reading { events, finished }))
        }
        Some(Err(error)) => Some((Err(error), State::Ended)),
        None if finished => None,
        None => Some((Err(thread_ended()), State::Ended)),
    }
}

fn thread_ended() -> ModelError {
    ModelError::new(ErrorClass::Internal, "the embedded model's thread ended")
}
