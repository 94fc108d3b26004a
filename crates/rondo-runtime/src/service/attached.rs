//! Attachments of the next message that is submitted.

use crate::cells::ATTACHED_MAX;
use rondo_types::Part;

/// Output of a person's commands, oldest first.
#[derive(Debug, Default)]
pub(super) struct Attached(Vec<AttachedPart>);

#[derive(Debug)]
struct AttachedPart {
    part: Part,
    /// The key of the message that it went along with.
    with: Option<String>,
}

impl Attached {
    /// Attaches a part to the next message. If too many wait, it does not.
    pub(super) fn add(&mut self, part: Part) {
        if self.0.len() >= ATTACHED_MAX {
            let gone = self.0.iter().position(|it| it.with.is_some());
            let Some(gone) = gone else {
                return;
            };
            self.0.remove(gone);
        }
        self.0.push(AttachedPart { part, with: None });
    }

    /// Returns the parts that accompany a message that is submitted under this key.
    pub(super) fn send(&mut self, key: &str) -> Vec<Part> {
        for attached in self.0.iter_mut().filter(|it| it.with.is_none()) {
            attached.with = Some(key.to_owned());
        }
        self.sent(key)
    }

    /// Returns the parts that accompanied a message that waits.
    pub(super) fn sent(&self, key: &str) -> Vec<Part> {
        let sent = self.0.iter().filter(|it| it.with.as_deref() == Some(key));
        sent.map(|it| it.part.clone()).collect()
    }

    /// Takes back what went along with a message that was not submitted, or was taken back.
    pub(super) fn take_back(&mut self, key: &str) {
        let sent = self.0.iter_mut();
        for attached in sent.filter(|it| it.with.as_deref() == Some(key)) {
            attached.with = None;
        }
    }

    /// Forgets what went along with a message that does not wait any more.
    pub(super) fn forget(&mut self, key: &str) {
        self.0.retain(|it| it.with.as_deref() != Some(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_goes_along_with_one_message_and_with_the_next_where_that_is_taken_back() {
        let part = |text: &str| Part::text(text.to_owned());
        let mut attached = Attached::default();
        attached.add(part("a"));
        assert_eq!(attached.send("one"), [part("a")]);
        attached.add(part("b"));
        assert_eq!(attached.sent("one"), [part("a")]);
        attached.take_back("one");
        assert_eq!(attached.send("two"), [part("a"), part("b")]);
        assert_eq!(attached.send("three"), []);
        attached.forget("two");
        attached.take_back("two");
        assert_eq!(attached.send("four"), []);
    }

    #[test]
    fn what_waits_is_bounded_and_what_was_sent_makes_room() {
        let part = |number: usize| Part::text(number.to_string());
        let mut attached = Attached::default();
        attached.add(part(0));
        attached.send("sent");
        for number in 1..=ATTACHED_MAX + 1 {
            attached.add(part(number));
        }
        let expected: Vec<Part> = (1..=ATTACHED_MAX).map(part).collect();
        assert_eq!(attached.send("next"), expected);
        assert_eq!(attached.sent("sent"), []);
    }
}
