//! Messages that were sent and wait.

use rondo_core::session::{Delivery, SessionEvent, TicketId};

/// Messages that are shown as waiting.
const WAITING_MAX: usize = 64;

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) ticket: TicketId,
    pub(crate) text: String,
    /// What goes along with it.
    pub(crate) attached: Vec<String>,
    pub(crate) delivery: Delivery,
}

/// All of them, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
    /// Those that were delivered before it was known that they wait.
    delivered: Vec<TicketId>,
}

impl Queue {
    pub(crate) fn add(&mut self, waiting: Waiting) {
        if let Some(at) = self.delivered.iter().position(|it| *it == waiting.ticket) {
            self.delivered.remove(at);
            return;
        }
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push(waiting);
        }
    }

    pub(crate) fn event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Delivered { ticket } | SessionEvent::Withdrawn { ticket } => {
                let before = self.waiting.len();
                self.waiting.retain(|it| it.ticket != *ticket);
                if before == self.waiting.len() && self.delivered.len() < WAITING_MAX {
                    self.delivered.push(ticket.clone());
                }
            }
            SessionEvent::Idle => {
                self.waiting.clear();
                self.delivered.clear();
            }
            _ => {}
        }
    }

    pub(crate) fn all(&self) -> &[Waiting] {
        &self.waiting
    }

    /// Takes the last one out, to be edited.
    pub(crate) fn take_last(&mut self) -> Option<Waiting> {
        self.waiting.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(name: &str) -> Waiting {
        Waiting {
            ticket: TicketId(name.to_owned()),
            text: name.to_owned(),
            attached: Vec::new(),
            delivery: Delivery::Queue,
        }
    }

    #[test]
    fn what_is_delivered_waits_no_more_whichever_is_known_first() {
        let mut queue = Queue::default();
        let delivered = |name: &str| SessionEvent::Delivered {
            ticket: TicketId(name.to_owned()),
        };
        queue.add(waiting("a"));
        queue.event(&delivered("b"));
        queue.add(waiting("b"));
        queue.add(waiting("c"));
        queue.event(&delivered("a"));
        assert_eq!(queue.all(), [waiting("c")]);
        assert_eq!(queue.take_last(), Some(waiting("c")));
    }
}
