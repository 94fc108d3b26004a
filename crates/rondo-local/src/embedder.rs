//! Vectors of texts, made of weights that are loaded for it and given back soon after.

use crate::engine::CpuEngine;
use crate::error::LocalError;
use crate::worker::model_error;
use async_trait::async_trait;
use rondo_core::ports::{Embedder, EmbeddingUse};
use rondo_types::{ErrorClass, ModelError};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The bound on the computed part of one text, in tokens with the prompt around it.
const TEXT_TOKENS_MAX: usize = 512;
/// Texts of one request: a busy machine takes some seconds for them, and what is made is kept by the caller.
const TEXTS_MAX: usize = 4;
/// How much a rank counts beside one by words. Of the 72 questions held out in `rondo-memory/tests/recall`, words alone
/// find 69, with as much weight for vectors 71, and with this one all (`docs/memory.md`).
const WEIGHT: f64 = 0.2;
/// Requests that wait for their turn.
const JOBS_MAX: usize = 16;
/// How long the weights stay loaded after a request, in case more follow.
const RELEASED_AFTER: Duration = Duration::from_secs(10);

/// Finds the file of the weights, or says why it is not there.
type Find = dyn Fn() -> Result<PathBuf, ModelError> + Send + Sync;
type Vectors = Result<Vec<Vec<f32>>, ModelError>;

/// Makes vectors of texts in this process.
///
/// A thread is started and the weights are loaded at the first request; ten seconds after the last one the weights
/// are given back. Dropping it ends the thread.
pub struct LocalEmbedder {
    name: String,
    find: Arc<Find>,
    released_after: Duration,
    jobs: Mutex<Option<SyncSender<Job>>>,
}

/// Texts, and where their vectors go. They are not wanted once the receiver is dropped.
struct Job {
    texts: Vec<String>,
    reply: oneshot::Sender<Vectors>,
}

impl LocalEmbedder {
    /// Takes the name of the vectors' model, and a function that finds its weights whenever they are needed.
    pub fn new(
        name: impl Into<String>,
        find: impl Fn() -> Result<PathBuf, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            find: Arc::new(find),
            released_after: RELEASED_AFTER,
            jobs: Mutex::new(None),
        }
    }

    /// Sets how long the weights stay loaded after a request.
    #[must_use]
    pub fn released_after(mut self, time: Duration) -> Self {
        self.released_after = time;
        self
    }

    /// Hands texts to the thread, which is started if there is none.
    fn submit(&self, texts: Vec<String>) -> Result<oneshot::Receiver<Vectors>, ModelError> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = match &*jobs {
            Some(sender) => sender,
            None => &*jobs.insert(self.start()?),
        };
        let (reply, vectors) = oneshot::channel();
        match sender.try_send(Job { texts, reply }) {
            Ok(()) => Ok(vectors),
            Err(TrySendError::Full(_)) => {
                let message = format!("{JOBS_MAX} requests for vectors are already waiting");
                Err(ModelError::new(ErrorClass::Overloaded, message))
            }
            Err(TrySendError::Disconnected(_)) => {
                *jobs = None;
                Err(thread_ended())
            }
        }
    }

    fn start(&self) -> Result<SyncSender<Job>, ModelError> {
        let (sender, jobs) = sync_channel(JOBS_MAX);
        let (find, released_after) = (Arc::clone(&self.find), self.released_after);
        std::thread::Builder::new()
            .name("rondo-vectors".to_owned())
            .spawn(move || run(&*find, &jobs, released_after))
            .map_err(|err| model_error(&LocalError::Thread(err)))?;
        Ok(sender)
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn weight(&self) -> f64 {
        WEIGHT
    }

    fn texts_max(&self) -> usize {
        TEXTS_MAX
    }

    async fn embed(&self, texts: &[String], _used: EmbeddingUse) -> Vectors {
        let vectors = self.submit(texts.to_vec())?;
        vectors.await.unwrap_or_else(|_| Err(thread_ended()))
    }
}

/// Does jobs until the last sender is dropped.
fn run(find: &Find, jobs: &Receiver<Job>, released_after: Duration) {
    let mut engine: Option<CpuEngine> = None;
    loop {
        let next = match engine {
            Some(_) => jobs.recv_timeout(released_after),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Job { texts, reply }) => {
                let vectors = vectors(&mut engine, find, &texts, &reply);
                // A caller that left does not need them.
                let _ = reply.send(vectors);
            }
            Err(RecvTimeoutError::Timeout) => engine = None,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Loads the weights if they are not, and makes vectors of texts while they are wanted.
fn vectors(
    engine: &mut Option<CpuEngine>,
    find: &Find,
    texts: &[String],
    reply: &oneshot::Sender<Vectors>,
) -> Vectors {
    let engine = match engine {
        Some(engine) => engine,
        none => none.insert(load(find)?),
    };
    let wanted = texts.iter().take_while(|_| !reply.is_closed());
    let vectors = wanted.map(|text| engine.embed(text).map_err(|err| model_error(&err)));
    vectors.collect()
}

fn load(find: &Find) -> Result<CpuEngine, ModelError> {
    CpuEngine::load(&find()?, TEXT_TOKENS_MAX).map_err(|err| model_error(&err))
}

fn thread_ended() -> ModelError {
    ModelError::new(ErrorClass::Internal, "the thread that makes vectors ended")
}
