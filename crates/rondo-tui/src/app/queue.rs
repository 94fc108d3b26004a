//! Messages that were sent and wait.

use rondo_core::session::{Delivery, SessionEvent, TicketId};

/// Messages that are shown as waiting.
const WAITING_MAX: usize = 64;

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingMessage {
    pub(crate) ticket: TicketId,
    pub(crate) text: String,
    /// What goes along with it.
    pub(crate) attached: Vec<String>,
    pub(crate) delivery: Delivery,
}

/// The message that the next turn begins with, while that turn is prepared.
#[derive(Debug)]
struct Opener {
    ticket: TicketId,
    /// What it says; unknown of a message that was not typed here.
    text: Option<String>,
}

/// All of them, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Vec<PendingMessage>,
    /// The message that was taken out of the queue and whose turn has not begun.
    opener: Option<Opener>,
    /// Whether no turn begins for now: another process works on the session, or the last one could not begin.
    is_held_up: bool,
    /// Those that were delivered before it was known that they wait.
    delivered: Vec<TicketId>,
    /// The one that was taken back into the input.
    taken: Option<PendingMessage>,
    /// Those behind it that were taken back on the way to it: they are sent again once it is.
    held: Vec<PendingMessage>,
}

impl Queue {
    pub(crate) fn add(&mut self, waiting: PendingMessage) {
        self.is_held_up = false;
        if let Some(at) = self.delivered.iter().position(|it| *it == waiting.ticket) {
            self.delivered.remove(at);
            let opener = self.opener.as_mut();
            if let Some(opener) = opener.filter(|it| it.ticket == waiting.ticket) {
                opener.text = Some(waiting.text);
            }
            return;
        }
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push(waiting);
        }
    }

    /// Takes what happened to messages. One that is delivered while no turn runs begins the next one.
    pub(crate) fn event(&mut self, event: &SessionEvent, is_in_turn: bool) {
        match event {
            SessionEvent::Delivered { ticket } => {
                let text = self.remove(ticket);
                self.is_held_up = false;
                if !is_in_turn {
                    let ticket = ticket.clone();
                    self.opener = Some(Opener { ticket, text });
                }
            }
            SessionEvent::Withdrawn { ticket } => {
                self.remove(ticket);
                self.opener.take_if(|it| it.ticket == *ticket);
            }
            SessionEvent::Idle => *self = self.without_waiting(),
            SessionEvent::Lost => {
                self.is_held_up = true;
                self.opener = None;
            }
            _ => {}
        }
    }

    /// Removes a message, and returns what it says if it was known to wait.
    fn remove(&mut self, ticket: &TicketId) -> Option<String> {
        match self.waiting.iter().position(|it| it.ticket == *ticket) {
            Some(at) => Some(self.waiting.remove(at).text),
            None => {
                if self.delivered.len() < WAITING_MAX {
                    self.delivered.push(ticket.clone());
                }
                None
            }
        }
    }

    fn without_waiting(&mut self) -> Self {
        Self {
            taken: self.taken.take(),
            held: std::mem::take(&mut self.held),
            ..Self::default()
        }
    }

    /// The turn of the message has begun.
    pub(crate) fn has_begun(&mut self) {
        self.opener = None;
    }

    /// The turn of the message cannot begin.
    pub(crate) fn has_failed(&mut self) {
        self.opener = None;
        self.is_held_up = true;
    }

    /// Returns the text of the message that opens the next turn, where it is the one of this ticket.
    pub(crate) fn opener_of(&self, ticket: &TicketId) -> Option<&str> {
        let opener = self.opener.as_ref().filter(|it| it.ticket == *ticket);
        opener?.text.as_deref()
    }

    /// Returns whether a turn is about to begin, if none runs.
    pub(crate) fn opens_turn(&self) -> bool {
        self.opener.is_some() || (!self.is_held_up && !self.waiting.is_empty())
    }

    /// Returns the text of the message that opens the next turn, if none runs.
    pub(crate) fn opener(&self) -> Option<&str> {
        match &self.opener {
            Some(opener) => opener.text.as_deref(),
            None if self.is_held_up => None,
            None => self.waiting.first().map(|it| it.text.as_str()),
        }
    }

    /// Returns the messages that wait, in the order in which they will be taken, but for the one that is edited and, while a
    /// turn is prepared, the one that opens it.
    pub(crate) fn behind_opener(
        &self,
        is_preparing: bool,
    ) -> impl Iterator<Item = &PendingMessage> {
        let holds_opener = is_preparing && self.opener.is_none();
        self.all().skip(usize::from(holds_opener))
    }

    /// Returns those that wait, the opener of the next turn included.
    fn all(&self) -> impl Iterator<Item = &PendingMessage> {
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
    pub(crate) fn take_last(&mut self, draft: &str) -> Option<PendingMessage> {
        let is_queued = |it: &PendingMessage| it.delivery == Delivery::Queue;
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
    pub(crate) fn take_next(&mut self, draft: &str) -> Option<(PendingMessage, PendingMessage)> {
        if !self.is_taken(draft) || self.held.is_empty() {
            return None;
        }
        let next = self.held.remove(0);
        let sent = self.taken.replace(next.clone())?;
        Some((sent, next))
    }

    /// The draft was sent or dropped. Returns those that are to be sent again behind it.
    pub(crate) fn release(&mut self) -> Vec<PendingMessage> {
        self.taken = None;
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(name: &str) -> PendingMessage {
        PendingMessage {
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
        queue.event(&delivered("b"), true);
        queue.add(waiting("b"));
        queue.add(waiting("c"));
        queue.event(&delivered("a"), true);
        assert_eq!(all(&queue), ["c"]);
        assert_eq!(queue.take_last(""), Some(waiting("c")));
    }

    #[test]
    fn the_message_that_opens_a_turn_is_known_whichever_is_known_first() {
        let delivered = |name: &str| SessionEvent::Delivered {
            ticket: TicketId(name.to_owned()),
        };
        let behind = |queue: &Queue| -> Vec<String> {
            queue
                .behind_opener(true)
                .map(|it| it.text.clone())
                .collect()
        };
        let mut queue = Queue::default();
        queue.add(waiting("a"));
        assert_eq!((queue.opener(), queue.opens_turn()), (Some("a"), true));
        queue.event(&delivered("a"), false);
        queue.add(waiting("b"));
        assert_eq!(
            (queue.opener(), behind(&queue)),
            (Some("a"), vec!["b".to_owned()])
        );
        queue.has_begun();
        queue.event(&delivered("b"), true);
        assert!(!queue.opens_turn());
        queue.event(&delivered("c"), false);
        assert_eq!((queue.opener(), queue.opens_turn()), (None, true));
        queue.add(waiting("c"));
        assert_eq!(queue.opener(), Some("c"));
        let ticket = TicketId("c".to_owned());
        assert_eq!(queue.opener_of(&ticket), Some("c"));
        queue.event(&SessionEvent::Withdrawn { ticket }, false);
        assert!(!queue.opens_turn());
    }

    #[test]
    fn a_turn_that_cannot_begin_is_not_about_to() {
        let mut queue = Queue::default();
        queue.add(waiting("a"));
        queue.has_failed();
        assert!(!queue.opens_turn());
        queue.add(waiting("b"));
        assert!(queue.opens_turn());
    }

    #[test]
    fn messages_wait_as_such_while_another_process_works_on_the_session() {
        let mut queue = Queue::default();
        queue.add(waiting("a"));
        queue.event(&SessionEvent::Lost, false);
        assert!(!queue.opens_turn() && queue.opener().is_none());
        assert_eq!(queue.behind_opener(false).count(), 1);
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
        let steers = PendingMessage {
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
