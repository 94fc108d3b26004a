//! A request on its way: the checks that it must pass, and its sending.

use super::Driver;
use super::model_work::ModelWork;
use crate::machine::{Input, ModelCall, RequestCheck};
use crate::observe::Moment;
use rondo_types::{ModelError, Outcome, TimeMs};
use std::sync::Arc;

impl Driver {
    /// Begins a check of the request that is held, which passes at once if there is nothing to ask.
    pub(super) async fn check_request(&mut self, check: RequestCheck) -> Option<Outcome> {
        let is_under_way = match check {
            RequestCheck::Tools => self.equip(),
            RequestCheck::Interceptors => self.ask_about_step(),
            RequestCheck::Budgets => self.fund(),
        };
        if is_under_way {
            return None;
        }
        self.decide(Input::RequestPassed { check }).await
    }

    /// Does what the machine says of an input that is not recorded, and of which no observer hears.
    pub(super) async fn decide(&mut self, input: Input) -> Option<Outcome> {
        for action in self.machine.handle(self.at, input, &self.catalog) {
            if let Some(outcome) = self.act(action).await {
                return Some(outcome);
            }
        }
        None
    }

    /// Returns when the check under way of the request that is held began.
    pub(super) fn held_since(&self) -> TimeMs {
        let held = self.machine.held_request();
        held.map_or(self.at, |held| held.since)
    }

    /// Sends a request, once it is recorded.
    pub(super) async fn send(&mut self, call: ModelCall) {
        self.batch.note_request(self.at, &call);
        if self.flush().await {
            let model = self.setup.model_at(call.model);
            let stream = model.stream(Arc::clone(&call.request));
            let server = model.server();
            let model = model.info();
            self.events.observe(&Moment::Requested {
                model: &model,
                server: server.as_ref(),
                call: &call,
            });
            self.model = Some(ModelWork::new(
                stream,
                &call,
                self.machine.work_deadline(),
                &self.clock,
                &model,
            ));
        }
    }
}

/// Returns the end of a request that was not sent.
pub(super) fn not_sent(error: ModelError) -> Input {
    Input::ReplyFailed {
        error,
        partial: String::new(),
        committed: false,
        received: false,
    }
}
