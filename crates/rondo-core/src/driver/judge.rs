//! The gate's verdicts, within a bound.

use super::guarded;
use super::intercept::Interceptors;
use crate::ports::{Approval, Gate, GateRequest, Terms, Verdict};
use rondo_types::Grant;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a gate may take to judge one call, within the turn's time; then the call is denied.
const GATE_TIMEOUT: Duration = Duration::from_secs(10);

/// A gate, and how long it is waited for.
#[derive(Clone)]
pub(super) struct Judge {
    gate: Arc<dyn Gate>,
    cancel: CancellationToken,
    limit: Duration,
}

impl Judge {
    /// Waits for verdicts as long as the turn has work time left, and until it is cancelled.
    pub(super) fn new(
        gate: Arc<dyn Gate>,
        cancel: CancellationToken,
        left: Option<Duration>,
    ) -> Self {
        let limit = left.map_or(GATE_TIMEOUT, |left| left.min(GATE_TIMEOUT));
        Self {
            gate,
            cancel,
            limit,
        }
    }

    /// Returns the gate's terms; `None` if it does not say in time.
    pub(super) async fn terms(&self, request: &GateRequest) -> Option<Terms> {
        let (gate, request) = (Arc::clone(&self.gate), request.clone());
        let terms = guarded(async move { gate.terms(&request).await });
        tokio::select! {
            () = self.cancel.cancelled() => None,
            terms = timeout(self.limit, terms) => terms.ok().and_then(Result::ok),
        }
    }

    /// Adds the user's grants to the gate.
    pub(super) fn remember(&self, grant: &Grant) {
        self.gate.remember(grant);
    }

    /// Returns the gate's verdict, or a denial that says why there is none.
    pub(super) async fn verdict(self, request: GateRequest) -> Verdict {
        let gate = self.gate;
        let judged = guarded(async move { gate.check(&request).await });
        tokio::select! {
            () = self.cancel.cancelled() => denied("the turn was cancelled"),
            judged = timeout(self.limit, judged) => match judged {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(panic)) => denied(&format!("the gate failed: {panic}")),
                Err(_) => denied("the gate did not answer in time"),
            },
        }
    }

    /// Lets an answer with other arguments count unless an interceptor or the gate denies those. Their questions
    /// are answered already.
    pub(super) async fn check_edit(
        self,
        interceptors: Interceptors,
        judged: Option<GateRequest>,
        answer: Approval,
    ) -> Approval {
        let (Approval::Edited { arguments, .. }, Some(judged)) = (&answer, judged) else {
            return answer;
        };
        let edited = GateRequest {
            arguments: arguments.clone(),
            ..judged
        };
        if let Some(reason) = interceptors.denies(edited.clone()).await {
            return Approval::Denied { reason };
        }
        match self.verdict(edited).await {
            Verdict::Allow | Verdict::Ask { .. } => answer,
            Verdict::Deny { reason } => Approval::Denied { reason },
        }
    }
}

fn denied(reason: &str) -> Verdict {
    Verdict::Deny {
        reason: reason.to_owned(),
    }
}
