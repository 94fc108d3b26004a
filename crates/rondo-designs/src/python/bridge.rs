//! Lends a provider and a session, which are borrowed, to a turn, which owns what it runs with.

use super::capabilities::{Capability, CapabilityProvider};
use super::translate;
use super::types::{AssistantOutput, LlmProvider};
use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use rondo_core::{Model, ModelStream, Tool, ToolInvocation};
use rondo_types::{
    Concurrency, Effects, ErrorClass, ModelError, ModelEvent, Recovery, ToolErrorCode, ToolOutcome,
};
use rondo_types::{ModelInfo, ModelRequest, ToolSpec};
use serde_json::Value;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Jobs that may wait. The loop does one thing at a time, so more than one is a job left behind.
const JOBS_WAITING: usize = 8;

/// Request of the turn.
pub(super) enum Job {
    Complete {
        request: Arc<ModelRequest>,
        reply: oneshot::Sender<Result<AssistantOutput, ModelError>>,
    },
    Call {
        capability: Capability,
        arguments: Value,
        reply: oneshot::Sender<ToolOutcome>,
    },
}

/// The turn's end.
pub(super) struct Bridge {
    jobs: mpsc::Sender<Job>,
}

impl Bridge {
    pub(super) fn new() -> (Self, mpsc::Receiver<Job>) {
        let (jobs, waiting) = mpsc::channel(JOBS_WAITING);
        (Self { jobs }, waiting)
    }

    pub(super) fn into_tools(self) -> [Arc<dyn Tool>; 7] {
        Capability::ALL.map(|capability| {
            let jobs = self.jobs.clone();
            Arc::new(CapabilityTool { capability, jobs }) as Arc<dyn Tool>
        })
    }
}

/// Does the jobs, one at a time; one whose requester is gone is dropped.
pub(super) async fn serve(
    provider: &impl LlmProvider,
    capabilities: &impl CapabilityProvider,
    mut jobs: mpsc::Receiver<Job>,
) -> Infallible {
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Complete { request, reply } => {
                let input = translate::input(&request);
                let work = async { provider.complete(input).await.map_err(model_error) };
                answer(work, reply).await;
            }
            Job::Call {
                capability,
                arguments,
                reply,
            } => answer(capability.call(capabilities, &arguments), reply).await,
        }
    }
    std::future::pending().await
}

/// Sends the result of the work. If it panics, the receiver sees that the sender is gone.
async fn answer<T>(work: impl Future<Output = T>, mut reply: oneshot::Sender<T>) {
    let done = tokio::select! {
        // First, so that work without a receiver is not started.
        biased;
        () = reply.closed() => return,
        done = AssertUnwindSafe(work).catch_unwind() => done,
    };
    if let Ok(done) = done {
        // The receiver may be gone by now.
        let _ = reply.send(done);
    }
}

/// A failure of a model of ours keeps its class.
fn model_error(error: anyhow::Error) -> ModelError {
    match error.downcast::<ModelError>() {
        Ok(error) => error,
        Err(error) => {
            let mut message = format!("{error:#}");
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
            ModelError::new(ErrorClass::Server, message)
        }
    }
}

/// Bytes of a provider's own error that are shown.
const MESSAGE_BYTES_MAX: usize = 512;

/// A provider of this design as a model of ours.
pub(super) struct ProviderModel {
    jobs: mpsc::Sender<Job>,
}

impl ProviderModel {
    pub(super) fn new(bridge: &Bridge) -> Self {
        let jobs = bridge.jobs.clone();
        Self { jobs }
    }
}

impl Model for ProviderModel {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            origin: translate::origin(),
            streaming: false,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let jobs = self.jobs.clone();
        let events = async move {
            let (reply, answer) = oneshot::channel();
            let job = Job::Complete { request, reply };
            let gone = |()| ModelError::new(ErrorClass::Internal, "the provider broke off");
            jobs.send(job).await.map_err(|_| gone(()))?;
            let output = answer.await.map_err(|_| gone(()))??;
            Ok::<_, ModelError>(translate::events(output))
        };
        Box::pin(stream::once(events).flat_map(|events| match events {
            Ok(events) => stream::iter(events.into_iter().map(Ok).collect::<Events>()),
            Err(error) => stream::iter(vec![Err(error)]),
        }))
    }
}

type Events = Vec<Result<ModelEvent, ModelError>>;

/// One of the seven functions as a tool of ours.
struct CapabilityTool {
    capability: Capability,
    jobs: mpsc::Sender<Job>,
}

#[async_trait]
impl Tool for CapabilityTool {
    fn spec(&self) -> ToolSpec {
        let declaration = self.capability.declaration();
        ToolSpec {
            name: declaration.name,
            description: declaration.description,
            parameters: declaration.parameters_json_schema,
            // Even a look may run code of the session's own, so each call has the session alone.
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::AtMostOnce,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let (reply, answer) = oneshot::channel();
        let job = Job::Call {
            capability: self.capability,
            arguments: invocation.arguments,
            reply,
        };
        let broken = || ToolOutcome::error(ToolErrorCode::Internal, "the session broke off");
        let work = async {
            match self.jobs.send(job).await {
                Ok(()) => answer.await.unwrap_or_else(|_| broken()),
                Err(_) => broken(),
            }
        };
        tokio::select! {
            outcome = work => outcome,
            () = invocation.cancel.cancelled() => {
                ToolOutcome::error(ToolErrorCode::Cancelled, "the call was ended")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_that_nobody_waits_for_does_not_begin() {
        for _ in 0..32 {
            let (reply, answered) = oneshot::channel();
            drop(answered);
            answer(async { unreachable!("it began") }, reply).await;
        }
    }
}
