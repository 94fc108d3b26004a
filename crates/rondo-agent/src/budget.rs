//! Budgets of a turn that may be dropped: what it has reserved then is given back.

use async_trait::async_trait;
use rondo_core::Budgets;
use rondo_core::ports::{Amount, Record, RecordBody, Reservation, ReservationRequest, Reserved};
use rondo_types::SessionId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// A budget of one turn. When the turn is dropped, its request is not sent to the end, and what was reserved for it is given
/// back.
pub(crate) struct TurnBudget {
    budget: Arc<dyn Budgets>,
    held: Mutex<Vec<OpenReservation>>,
}

/// A reservation that is not settled.
struct OpenReservation {
    session: SessionId,
    id: String,
    /// Use by the request, if known.
    used: Amount,
}

impl OpenReservation {
    fn is(&self, session: &SessionId, id: &str) -> bool {
        (&self.session, self.id.as_str()) == (session, id)
    }
}

impl TurnBudget {
    pub(crate) fn wrap(budget: Arc<dyn Budgets>) -> Arc<dyn Budgets> {
        Arc::new(Self {
            budget,
            held: Mutex::default(),
        })
    }

    fn held(&self) -> MutexGuard<'_, Vec<OpenReservation>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Budgets for TurnBudget {
    async fn reserve(&self, request: &ReservationRequest) -> Reserved {
        let held = OpenReservation {
            session: request.session.clone(),
            id: request.id.clone(),
            used: Amount::default(),
        };
        // Before the budget is asked: it may grant an amount whose requester is gone.
        self.held().push(held);
        let reserved = self.budget.reserve(request).await;
        if !matches!(reserved, Reserved::Granted) {
            self.held()
                .retain(|it| !it.is(&request.session, &request.id));
        }
        reserved
    }

    async fn settle(&self, session: &SessionId, id: &str, used: Amount) {
        if let Some(held) = self.held().iter_mut().find(|it| it.is(session, id)) {
            held.used = used;
        }
        self.budget.settle(session, id, used).await;
        self.held().retain(|it| !it.is(session, id));
    }
}

impl Drop for TurnBudget {
    fn drop(&mut self) {
        let held = std::mem::take(self.held.get_mut().unwrap_or_else(PoisonError::into_inner));
        let (false, Ok(runtime)) = (held.is_empty(), Handle::try_current()) else {
            return;
        };
        let budget = Arc::clone(&self.budget);
        runtime.spawn(async move {
            for it in held {
                budget.settle(&it.session, &it.id, it.used).await;
            }
        });
    }
}

/// Reserves again what an interrupted turn had reserved: its request is sent again without asking the budgets.
pub(crate) async fn reserve_again(
    budgets: &[Arc<dyn Budgets>],
    session: &SessionId,
    records: &[Record],
) {
    let Some((record, reservation)) = open_reservation(records) else {
        return;
    };
    let request = ReservationRequest {
        session: session.clone(),
        turn: record.turn.clone(),
        step: record.step,
        id: reservation.id.clone(),
        estimate: reservation.estimate,
        beyond: true,
    };
    for budget in budgets {
        budget.reserve(&request).await;
    }
}

/// Returns the reservation of a request whose reply is not recorded.
fn open_reservation(records: &[Record]) -> Option<(&Record, &Reservation)> {
    let mut open = None;
    for record in records {
        match &record.body {
            RecordBody::Reserved(reservation) => {
                let is_granted = reservation.refused.is_none();
                open = is_granted.then_some((record, reservation));
            }
            RecordBody::ModelReplied { .. } | RecordBody::ModelFailed { .. } => open = None,
            _ => {}
        }
    }
    open
}
