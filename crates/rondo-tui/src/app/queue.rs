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
    /// The one that was taken back into the input.
    taken: Option<Waiting>,
    /// Those behind it that were taken back on the way to it: they are sent again once it is.
    held: Vec<Waiting>,
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

    /// Returns those that wait, in the order in which they will be taken, but for the one that is edited.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter().chain(&self.held)
    }

    /// Returns whether there is one to take back.
    pub(crate) fn may_take(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether the next one to take back is queued for the next turn.
    pub(crate) fn takes_queued(&self) -> bool {
        self.waiting.iter().any(|it| it.delivery == Delivery::Queue)
    }

    /// Returns whether a draft is the one that was taken back, as it was.
    pub(crate) fn is_taken(&self, draft: &str) -> bool {
        self.taken.as_ref().is_some_and(|it| it.text == draft)
    }

    /// One could not be taken back, and waits as before. Returns whether it is in the input as it was.
    pub(crate) fn stays(&mut self, ticket: &TicketId, draft: &str) -> bool {
        let held = self.held.iter().position(|it| it.ticket == *ticket);
        let held = held.map(|at| self.held.remove(at));
        let taken = self.taken.take_if(|it| it.ticket == *ticket);
        let is_draft = taken.as_ref().is_some_and(|it| it.text == draft);
        if let Some(waiting) = held.or(taken) {
            self.add(waiting);
        }
        is_draft
    }

    /// Takes the last one back, to be edited: one that steers only where none is queued, since it may be read any moment. One
    /// that is in the input as it was makes room for it.
    pub(crate) fn take_last(&mut self, draft: &str) -> Option<Waiting> {
        let is_queued = |it: &Waiting| it.delivery == Delivery::Queue;
        let queued = self.waiting.iter().rposition(is_queued);
        let last = match queued {
            Some(at) => self.waiting.remove(at),
            None => self.waiting.pop()?,
        };
        let is_as_it_was = self.is_taken(draft);
        let before = self.taken.replace(last.clone());
        if let Some(before) = before.filter(|_| is_as_it_was) {
            self.held.insert(0, before);
        }
        Some(last)
    }

    /// Returns the one in the input, to be sent as it was, and the one behind it, to be edited.
    pub(crate) fn take_next(&mut self, draft: &str) -> Option<(Waiting, Waiting)> {
        if !self.is_taken(draft) || self.held.is_empty() {
            return None;
        }
        let next = self.held.remove(0);
        let sent = self.taken.replace(next.clone())?;
        Some((sent, next))
    }

    /// The draft was sent or dropped. Returns those that are to be sent again behind it.
    pub(crate) fn release(&mut self) -> Vec<Waiting> {
        self.taken = None;
        std::mem::take(&mut self.held)
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

    fn all(queue: &Queue) -> Vec<&str> {
        queue.all().map(|it| it.text.as_str()).collect()
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
        assert_eq!(all(&queue), ["c"]);
        assert_eq!(queue.take_last(""), Some(waiting("c")));
    }

    #[test]
    fn each_one_is_reached_and_those_behind_it_keep_their_places() {
        let mut queue = Queue::default();
        for name in ["a", "b", "c"] {
            queue.add(waiting(name));
        }
        assert_eq!(queue.take_last(""), Some(waiting("c")));
        assert_eq!(queue.take_last("c"), Some(waiting("b")));
        assert_eq!(queue.take_last("b"), Some(waiting("a")));
        assert_eq!(queue.take_last("a"), None);
        assert_eq!(all(&queue), ["b", "c"]);
        assert_eq!(queue.take_next("a"), Some((waiting("a"), waiting("b"))));
        assert_eq!(queue.take_next("b, edited"), None);
        assert_eq!(queue.release(), [waiting("c")]);
        assert_eq!(all(&queue), [""; 0]);
    }

    #[test]
    fn one_that_cannot_be_taken_back_waits_on_and_is_not_sent_twice() {
        let mut queue = Queue::default();
        for name in ["a", "b"] {
            queue.add(waiting(name));
        }
        queue.take_last("");
        queue.take_last("b");
        assert!(!queue.stays(&TicketId("b".to_owned()), "a"));
        assert_eq!(all(&queue), ["b"]);
        assert!(queue.stays(&TicketId("a".to_owned()), "a"));
        assert_eq!(all(&queue), ["b", "a"]);
        assert_eq!(queue.release(), []);
        queue.take_last("");
        assert!(!queue.stays(&TicketId("a".to_owned()), "a, edited"));
    }

    #[test]
    fn one_that_is_queued_is_taken_before_one_that_is_on_its_way() {
        let mut queue = Queue::default();
        let steers = Waiting {
            delivery: Delivery::Steer,
            ..waiting("steers")
        };
        queue.add(waiting("queued"));
        queue.add(steers.clone());
        assert_eq!(queue.take_last(""), Some(waiting("queued")));
        assert_eq!(queue.take_last("queued, edited"), Some(steers));
    }

    #[test]
    fn one_that_was_deleted_in_the_input_is_gone() {
        let mut queue = Queue::default();
        queue.add(waiting("a"));
        queue.add(waiting("b"));
        assert_eq!(queue.take_last(""), Some(waiting("b")));
        assert_eq!(queue.take_last(""), Some(waiting("a")));
        assert_eq!(queue.release(), []);
    }
}
