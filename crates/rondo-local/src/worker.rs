//! The inference thread: generates one reply at a time, in the order of the requests.

use crate::engine::Engine;
use crate::error::LocalError;
use crate::generation::{self, End, GenerationEnd, Listener};
use crate::grammar::{Grammars, StepShape};
use crate::prompt::Prompt;
use crate::prompt_cache::PromptCache;
use crate::sampler::Sampler;
use crate::step::{StepEvent, StepReader};
use rondo_types::{
    ErrorClass, FinishReason, ModelError, ModelEvent, ModelRequest, ToolSpec, Usage,
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The bound on a reply, in tokens, if the request names no smaller one.
pub const REPLY_TOKENS_MAX: usize = 1_024;
/// Room that a prompt must leave for its reply, in tokens.
const REPLY_TOKENS_MIN: usize = 64;
/// Requests that wait for their turn.
pub(crate) const JOBS_MAX: usize = 16;
/// Events that wait for their reader.
pub(crate) const EVENTS_MAX: usize = 64;

/// Item of a reader's stream.
pub(crate) type Event = Result<ModelEvent, ModelError>;

/// One request, and where its reply goes. The reply is not wanted once the receiver is dropped.
pub(crate) struct Job {
    pub(crate) request: Arc<ModelRequest>,
    pub(crate) reply: mpsc::Sender<Event>,
}

/// Loads the engine when it is first asked, and answers until the last sender is dropped.
pub(crate) fn run(
    load: impl FnOnce() -> Result<Box<dyn Engine>, LocalError>,
    cache: Option<PromptCache>,
    mut jobs: mpsc::Receiver<Job>,
) {
    let Some(first) = jobs.blocking_recv() else {
        return;
    };
    let mut desk = load().and_then(|engine| EngineState::new(engine, cache));
    let mut next = Some(first);
    while let Some(job) = next {
        let failure = match &mut desk {
            Ok(desk) => desk.answer(&job).err().map(|err| model_error(&err)),
            Err(err) => Some(model_error(err)),
        };
        if let Some(failure) = failure {
            // A caller that left does not need to know.
            let _ = job.reply.blocking_send(Err(failure));
        }
        // The reply ends when its sender is gone.
        drop(job);
        next = jobs.blocking_recv();
    }
}

/// An engine with what it takes to answer.
struct EngineState {
    engine: Box<dyn Engine>,
    grammars: Grammars,
    shown: CachedPrompt,
    cache: Option<PromptCache>,
}

/// The system prompt that was computed last.
#[derive(Default)]
struct CachedPrompt {
    system: Vec<String>,
    tools: Arc<Vec<ToolSpec>>,
}

impl CachedPrompt {
    /// Returns the tools to list for a request. A request that withholds tools, as the last one of
    /// a turn does, keeps the list of the ones before: the grammar leaves the tools out anyway, and
    /// another system prompt would have everything behind it computed again.
    fn tools(&mut self, request: &ModelRequest) -> Arc<Vec<ToolSpec>> {
        let goes_on = self.system == *request.system && request.messages.len() > 1;
        let covered = request.tools.iter().all(|tool| self.tools.contains(tool));
        if !(goes_on && covered) {
            self.system.clone_from(&request.system);
            self.tools = Arc::clone(&request.tools);
        }
        Arc::clone(&self.tools)
    }
}

impl EngineState {
    fn new(engine: Box<dyn Engine>, cache: Option<PromptCache>) -> Result<Self, LocalError> {
        Ok(Self {
            grammars: Grammars::new(engine.vocabulary())?,
            engine,
            shown: CachedPrompt::default(),
            cache,
        })
    }

    fn answer(&mut self, job: &Job) -> Result<(), LocalError> {
        let shape = StepShape::of(&job.request);
        let vocabulary = Arc::clone(self.engine.vocabulary());
        let shown = self.shown.tools(&job.request);
        let prompt = Prompt::new(&vocabulary, &job.request, &shown, &shape)?;
        let mut reply = Reply {
            sender: &job.reply,
            reader: StepReader::new(shape.answer),
        };
        let wanted = generation::Job {
            tokens_max: self.reply_tokens(prompt.tokens.len(), &job.request)?,
            matcher: self.grammars.matcher(&shape)?,
            sampler: sampler(&job.request, &prompt.tokens),
            prompt: &prompt.tokens,
            beginnings: &prompt.beginnings,
            cache: self.cache.as_ref(),
        };
        let generated = generation::generate(self.engine.as_mut(), wanted, &mut reply)?;
        reply.finish(generated, prompt.tokens.len());
        Ok(())
    }

    fn reply_tokens(&self, prompt: usize, request: &ModelRequest) -> Result<usize, LocalError> {
        let context = self.engine.context_tokens();
        let room = context.saturating_sub(prompt);
        if room < REPLY_TOKENS_MIN {
            return Err(LocalError::ContextTooLong {
                needed: prompt + REPLY_TOKENS_MIN,
                context,
            });
        }
        let asked = request.sampling.max_output_tokens;
        let asked = asked.and_then(|asked| usize::try_from(asked).ok());
        let most = asked.map_or(REPLY_TOKENS_MAX, |asked| asked.min(REPLY_TOKENS_MAX));
        Ok(most.min(room))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a temperature loses nothing that matters"
)]
fn sampler(request: &ModelRequest, prompt: &[u32]) -> Sampler {
    let temperature = request.sampling.temperature.unwrap_or(0.0) as f32;
    // The same request is answered the same way.
    let seed = prompt.iter().fold(0xcbf2_9ce4_8422_2325, |seed: u64, one| {
        (seed ^ u64::from(*one)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Sampler::new(temperature, seed)
}

/// The reply while it is generated.
struct Reply<'a> {
    sender: &'a mpsc::Sender<Event>,
    reader: StepReader,
}

impl Listener for Reply<'_> {
    fn is_waiting(&self) -> bool {
        !self.sender.is_closed()
    }

    fn take(&mut self, bytes: &[u8]) {
        for event in self.reader.push(bytes) {
            self.send(event);
        }
    }
}

impl Reply<'_> {
    fn finish(&mut self, generated: GenerationEnd, prompt_tokens: usize) {
        let is_call = self.reader.is_call();
        let (reason, raw) = match generated.end {
            End::Unwanted => return,
            End::Length => (FinishReason::Length, "length"),
            End::Whole if is_call => (FinishReason::ToolCalls, "tool_call"),
            End::Whole => (FinishReason::Stop, "stop"),
        };
        if generated.end == End::Whole {
            if let Some(event) = self.reader.finish() {
                self.send(event);
            }
            if is_call {
                self.emit(ModelEvent::ToolCallFinished {
                    call: 0,
                    opaque: None,
                });
            }
        }
        self.emit(ModelEvent::Usage(Usage {
            input: count(prompt_tokens),
            output: count(generated.tokens),
            cache_read: count(generated.reused),
            ..Usage::default()
        }));
        self.emit(ModelEvent::Finished {
            candidate: 0,
            reason,
            raw: raw.to_owned(),
        });
    }

    fn send(&self, event: StepEvent) {
        self.emit(match event {
            StepEvent::Text(text) => ModelEvent::TextDelta { candidate: 0, text },
            StepEvent::Call { name } => ModelEvent::ToolCallStarted {
                candidate: 0,
                call: 0,
                wire_id: None,
                name,
            },
            StepEvent::Arguments(arguments) => ModelEvent::ToolCallDelta { call: 0, arguments },
        });
    }

    fn emit(&self, event: ModelEvent) {
        // A reader that is gone is noticed by `is_waiting`.
        let _ = self.sender.blocking_send(Ok(event));
    }
}

fn count(tokens: usize) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

pub(crate) fn model_error(error: &LocalError) -> ModelError {
    let class = match error {
        LocalError::Read { .. } => ErrorClass::NotFound,
        LocalError::Format { .. } => ErrorClass::BadRequest,
        LocalError::Unsupported { .. } => ErrorClass::Unsupported,
        LocalError::ContextTooLong { .. } => ErrorClass::ContextTooLong,
        LocalError::Inference(_) | LocalError::Grammar(_) | LocalError::Thread(_) => {
            ErrorClass::Internal
        }
    };
    let message = match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    ModelError::new(class, message)
}
