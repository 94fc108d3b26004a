//! Questions about calls: put to the approver one at a time, and void where what they are about changes meanwhile.

use super::intercept::Interceptors;
use super::judge::Judge;
use super::{CANCELLED, Driver, TaskEnd, guarded, not_approved, sleep_until_some};
use crate::machine::{Input, PlannedCall};
use crate::ports::{Approval, ApprovalReply, ApprovalRequest, Approver, GateRequest};
use rondo_types::{Answer, MailId, TimeMs, ToolSpec};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How often a question is put again because what it is about changed before the answer; then the call is denied.
const ASKED_AGAIN_MAX: u32 = 3;
/// Said below the words of such a question.
const CHANGED: &str =
    "It is asked again: its directory, variables or files changed before the answer.";
/// What the model reads where they do not stop changing.
const KEEPS_CHANGING: &str = "what it is about changed each time before it was allowed";
/// What the model reads where nothing can wait.
const NOT_LATER: &str = "nobody can answer later, since nothing is recorded of the turn";

/// A question about a call, and what becomes of its answer.
struct CallAsk {
    request: ApprovalRequest,
    spec: Option<Arc<ToolSpec>>,
    /// The call as the gate sees it; none where its tool is gone.
    judged: Option<GateRequest>,
    judge: Judge,
    interceptors: Interceptors,
    approver: Arc<dyn Approver>,
    /// Held while a person is asked.
    asking: Arc<Mutex<()>>,
    cancel: CancellationToken,
    until: Option<Instant>,
    can_park: bool,
}

impl Driver {
    /// Asks a person about a call, once that is recorded, and waits for the answer until the instant or until the turn is
    /// stopped.
    pub(super) async fn ask(
        &mut self,
        call: PlannedCall,
        prompt: String,
        (until, can_edit): (Option<TimeMs>, bool),
    ) {
        self.batch
            .note_ask(self.at, self.machine.steps(), &call.call_id, &prompt);
        if !self.flush().await {
            return;
        }
        let spec = self.setup.tools.spec(&call.name);
        let judged = spec.clone().map(|spec| self.gate_request(spec, &call));
        let request = ApprovalRequest {
            session: self.setup.session.clone(),
            turn: self.setup.turn.clone(),
            step: self.machine.steps(),
            call_id: call.call_id,
            kind: spec.as_ref().map(|spec| spec.kind).unwrap_or_default(),
            tool: call.name,
            arguments: call.arguments,
            prompt,
            can_edit,
            terms: crate::ports::Terms::default(),
        };
        let ask = CallAsk {
            request,
            spec,
            judged,
            judge: self.judge(),
            interceptors: self.interceptors(),
            approver: Arc::clone(&self.setup.approver),
            asking: Arc::clone(&self.asking),
            cancel: self.tasks_cancel.clone(),
            until: until.map(|until| self.clock.instant(until)),
            can_park: self.batch.keeps_records(),
        };
        self.tasks.spawn(ask.put().in_current_span());
    }
}

impl CallAsk {
    async fn put(mut self) -> TaskEnd {
        let mut given = None;
        let mut approval = not_approved(KEEPS_CHANGING);
        let prompt = self.request.prompt.clone();
        for round in 0..=ASKED_AGAIN_MAX {
            if round > 0 {
                self.request.prompt = format!("{prompt}\n{CHANGED}");
            }
            self.learn_terms().await;
            match self.answer().await {
                ApprovalReply::Later { expires } if self.can_park => {
                    // As it is asked when the turn goes on.
                    self.request.prompt = prompt;
                    return TaskEnd::Later(self.request.question(expires));
                }
                ApprovalReply::Later { .. } => approval = not_approved(NOT_LATER),
                ApprovalReply::Now(answer) => approval = answer,
                ApprovalReply::Given { answer, mail } => {
                    approval = Approval::of_answer(&answer.value);
                    given = Some((answer, mail));
                }
            }
            if approval != Approval::Approved || self.still_holds().await {
                break;
            }
            (approval, given) = (not_approved(KEEPS_CHANGING), None);
        }
        self.settled(approval, given).await
    }

    async fn settled(self, approval: Approval, given: Option<(Answer, Option<MailId>)>) -> TaskEnd {
        let given = given.map(|(mut answer, mail)| {
            let offers = &self.request.terms.offers;
            answer.remember = answer
                .remember
                .filter(|it| approval == Approval::Approved && offers.contains(it));
            if let Some(grant) = &answer.remember {
                self.judge.remember(grant);
            }
            (answer, mail)
        });
        let call_id = self.request.call_id.clone();
        let approval = self
            .judge
            .check_edit(self.interceptors, &self.request, self.spec, approval)
            .await;
        let input = Input::Approval { call_id, approval };
        match given {
            Some((answer, mail)) => TaskEnd::Given {
                input,
                answer,
                mail,
            },
            None => TaskEnd::Input(input),
        }
    }

    async fn learn_terms(&mut self) {
        let Some(judged) = &self.judged else {
            return;
        };
        self.request.terms = self.judge.terms(judged).await.unwrap_or_default();
        if !self.request.can_edit {
            // A yes to a call that may have been done already says nothing about others.
            self.request.terms.offers.clear();
        }
    }

    /// Returns whether the call is still the one that was asked about.
    async fn still_holds(&self) -> bool {
        match &self.judged {
            Some(judged) => {
                let terms = self.judge.terms(judged).await;
                terms.is_some_and(|it| it.hash == self.request.terms.hash)
            }
            None => true,
        }
    }

    async fn answer(&self) -> ApprovalReply {
        let (approver, asking) = (Arc::clone(&self.approver), Arc::clone(&self.asking));
        let request = self.request.clone();
        let answer = guarded(async move {
            let _turn_to_ask = asking.lock().await;
            approver.ask(&request).await
        });
        tokio::select! {
            () = self.cancel.cancelled() => not_approved(CANCELLED).into(),
            () = sleep_until_some(self.until) => not_approved("nobody answered in time").into(),
            answer = answer => answer
                .unwrap_or_else(|panic| not_approved(&format!("asking failed: {panic}")).into()),
        }
    }
}
