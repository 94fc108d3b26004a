//! Tests: the updates that a ring holds, those that it drops, and the places of listeners in it.

use super::*;
use rondo_testkit::Dice;
use rondo_types::{CallId, EventBody, SessionId, TimeMs, TurnEvent, TurnId};

fn turn_event(body: EventBody) -> UpdateBody {
    let event = TurnEvent {
        seq: 1,
        at: TimeMs(1),
        session: SessionId::new("s"),
        turn: TurnId::new("t"),
        body,
    };
    UpdateBody::Turn {
        event: Box::new(event),
    }
}

fn said(bytes: usize) -> UpdateBody {
    turn_event(EventBody::TextDelta {
        text: "x".repeat(bytes),
    })
}

fn live(bytes: usize) -> UpdateBody {
    turn_event(EventBody::ToolOutputDelta {
        id: CallId::new("c"),
        text: "x".repeat(bytes),
    })
}

fn place(update: u32) -> CursorPosition {
    CursorPosition {
        update,
        ..CursorPosition::beginning(1, 0, TimeMs(1))
    }
}

fn all(held: &RingTotals) -> usize {
    held.bytes.load(Ordering::Relaxed)
}

/// A ring of a session that is worked on.
fn ring(held: &Arc<RingTotals>) -> Ring {
    let mut ring = Ring::new(Arc::clone(held));
    ring.take(Seq(0));
    ring.begin(place(0));
    ring
}

#[test]
fn an_update_that_is_larger_than_the_ring_is_not_held_and_is_known_to_be_left_out() {
    let held = Arc::default();
    let mut ring = ring(&held);
    ring.push(place(1), said(10));
    ring.push(place(2), said(RING_BYTES_MAX + 1));
    ring.push(place(2), live(RING_BYTES_MAX + 2));
    ring.push(place(3), said(10));
    assert!(ring.bytes < 10_000, "{}", ring.bytes);
    let mut stand = ring.stand_after(place(1), 0);
    let mut next = || match ring.next(&mut stand) {
        NextUpdate::TooLarge(update) => update,
        NextUpdate::Update(..) | NextUpdate::Nothing | NextUpdate::Gone => panic!("not too large"),
    };
    let expected = |number, bytes: usize, is_live| TooLarge {
        number,
        place: place(2),
        bytes: bytes as u64,
        is_live,
    };
    assert_eq!(next(), expected(1, RING_BYTES_MAX + 1, false));
    assert_eq!(next(), expected(2, RING_BYTES_MAX + 2, true));
    assert!(matches!(ring.next(&mut stand), NextUpdate::Update(..)));
    assert_eq!(stand.live_bytes, RING_BYTES_MAX as u64 + 2);
}

#[test]
fn an_idle_ring_gives_up_all_that_it_holds_and_a_busy_one_keeps_where_it_ends() {
    let held = Arc::default();
    let [mut busy, mut idle] = [(), ()].map(|()| {
        let mut ring = ring(&held);
        ring.push(place(1), said(1_000));
        ring.push(place(2), said(1_000));
        ring
    });
    idle.release(Seq(9));
    let each = busy.bytes;
    assert_eq!((all(&held), idle.make_room(usize::MAX)), (2 * each, each));
    assert!(idle.is_empty());
    assert_eq!(idle.end(), place(2));
    // Who was told of everything stands there still.
    let mut stand = idle.stand_after(place(2), 0);
    assert!(matches!(idle.next(&mut stand), NextUpdate::Nothing));
    assert_eq!(busy.make_room(usize::MAX), each - UPDATE_BYTES);
    assert_eq!((all(&held), busy.end()), (UPDATE_BYTES, place(2)));
    let mut stand = busy.stand_after(place(1), 0);
    let left = TooLarge {
        number: 1,
        place: place(2),
        bytes: 1_000,
        is_live: false,
    };
    assert!(matches!(busy.next(&mut stand), NextUpdate::TooLarge(it) if it == left));
    drop((busy, idle));
    assert_eq!(all(&held), 0);
}

#[test]
fn room_is_made_for_many_updates_at_once() {
    let held = RingTotals::default();
    held.bytes.store(RINGS_BYTES_MAX, Ordering::Relaxed);
    assert_eq!(held.too_much(), 0);
    held.bytes.store(RINGS_BYTES_MAX + 1, Ordering::Relaxed);
    assert_eq!(held.too_much(), RINGS_BYTES_MAX / 8 + 1);
}

/// A listener as a subscription has it, without records: what it passes over it counts as missed.
#[derive(Default)]
struct Listener {
    stand: Option<RingPosition>,
    live_bytes: u64,
    heard: u64,
    missed: u64,
    place: CursorPosition,
    since: u64,
}

impl Listener {
    fn listen(&mut self, ring: &mut Ring) {
        loop {
            let mut stand = match self.stand.take() {
                Some(stand) => stand,
                None => {
                    let stand = ring.stand_after(self.place, self.since);
                    self.missed += stand.live_bytes.saturating_sub(self.live_bytes);
                    stand
                }
            };
            let next = ring.next(&mut stand);
            if matches!(next, NextUpdate::Gone) {
                continue;
            }
            let passed = stand.live_bytes.saturating_sub(self.live_bytes);
            match next {
                NextUpdate::Update(before, place, body) => {
                    assert!(before <= place && self.place <= place);
                    self.heard += body.live_bytes();
                    self.place = place;
                }
                NextUpdate::TooLarge(update) => {
                    self.missed += if update.is_live { update.bytes } else { 0 };
                    self.place = self.place.max(update.place);
                }
                NextUpdate::Nothing | NextUpdate::Gone => {
                    self.live_bytes = stand.live_bytes;
                    self.since = stand.next;
                    return self.stand = Some(stand);
                }
            }
            assert!(passed <= self.heard + self.missed);
            self.live_bytes = stand.live_bytes;
            self.since = stand.next;
            self.stand = Some(stand);
        }
    }
}

#[test]
fn whatever_is_pushed_and_let_go_of_bounds_hold_and_each_byte_is_heard_or_missed() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let held: Arc<RingTotals> = Arc::default();
        let mut rings = [(), ()].map(|()| ring(&held));
        let mut listeners: [Listener; 2] = Default::default();
        let mut written = [0, 0];
        let mut places = [0, 0];
        for _ in 0..80 {
            let at = usize::try_from(dice.roll(2)).unwrap();
            let ring = &mut rings[at];
            let bytes = match dice.roll(20) {
                0 => RING_BYTES_MAX + 1,
                1..=4 => RING_BYTES_MAX / 5,
                _ => usize::try_from(dice.roll(2_000)).unwrap(),
            };
            match dice.roll(10) {
                0 => {
                    let pieces = COALESCE_AFTER * 2;
                    (0..pieces).for_each(|_| ring.push(place(places[at]), live(7)));
                    written[at] += 7 * pieces as u64;
                }
                1..=3 => {
                    ring.push(place(places[at]), live(bytes));
                    written[at] += bytes as u64;
                }
                4..=5 => {
                    places[at] += 1;
                    ring.push(place(places[at]), said(bytes));
                }
                6 => {
                    let before = all(&held);
                    let gone = ring.make_room(bytes);
                    assert_eq!(before - all(&held), gone, "seed {seed}");
                }
                7 => ring.release(Seq(1)),
                8 => ring.take(Seq(1)),
                _ => listeners[at].listen(ring),
            }
            assert!(ring.bytes <= RING_BYTES_MAX, "seed {seed}");
            let sum: usize = rings.iter().map(|it| it.bytes).sum();
            assert_eq!(sum, all(&held), "seed {seed}");
        }
        for (at, listener) in listeners.iter_mut().enumerate() {
            listener.listen(&mut rings[at]);
            let counted = listener.heard + listener.missed;
            assert_eq!(counted, written[at], "seed {seed}");
        }
    }
}

#[test]
fn what_was_read_in_the_records_is_not_held_again_when_it_arrives_live() {
    let held = Arc::default();
    let mut ring = Ring::new(Arc::clone(&held));
    assert!(ring.begin_after(place(0), Seq(1)));
    let call = || turn_event(EventBody::StepStarted { step: 1 });
    assert!(ring.follow(Seq(1), Seq(2), vec![(place(1), call()), (place(2), call())]));
    assert!(ring.follow_live(place(1), call()));
    assert!(ring.follow_live(place(2), call()));
    assert_eq!(ring.updates.len(), 2);
    assert!(ring.follow_live(place(2), live(3)));
    assert!(ring.follow_live(place(3), call()));
    assert_eq!(ring.updates.len(), 4);
    let other_run = CursorPosition::beginning(1, 0, TimeMs(0));
    assert!(!ring.follow_live(other_run, call()));
}

fn text_of(ring: &mut Ring, stand: &mut RingPosition) -> Vec<String> {
    let mut texts = Vec::new();
    while let NextUpdate::Update(_, _, body) = ring.next(stand) {
        let UpdateBody::Turn { event } = &*body else {
            panic!("{body:?}");
        };
        texts.push(match &event.body {
            EventBody::TextDelta { text } | EventBody::ToolOutputDelta { text, .. } => text.clone(),
            EventBody::ToolProgress { progress, .. } => format!("{:?}", progress.done),
            other => panic!("{other:?}"),
        });
    }
    texts
}

#[test]
fn deltas_that_no_listener_came_to_are_joined_past_a_bound_and_none_is_joined_to_what_was_read() {
    let held = Arc::default();
    let mut ring = ring(&held);
    let at = |offset| CursorPosition { offset, ..place(1) };
    let mut stand = ring.stand_after(place(0), 0);
    let mut offset = 0;
    let mut push = |ring: &mut Ring, pieces: usize| {
        for _ in 0..pieces {
            offset += 1;
            ring.push(at(offset), said(1));
        }
    };
    push(&mut ring, COALESCE_AFTER + 10);
    assert_eq!(ring.updates.len(), COALESCE_AFTER);
    let texts = text_of(&mut ring, &mut stand);
    assert_eq!(texts.last().map(String::len), Some(11));
    assert_eq!(texts.concat().len(), COALESCE_AFTER + 10);
    // One that stands behind the last hears what follows.
    push(&mut ring, 3);
    assert_eq!(text_of(&mut ring, &mut stand), ["x", "x", "x"]);
    push(&mut ring, COALESCE_AFTER);
    let since = ring.next_number();
    let mut late = {
        let end = ring.end();
        ring.stand_after(end, since)
    };
    push(&mut ring, 1);
    assert_eq!(text_of(&mut ring, &mut late), ["x"]);
    // What is joined has a bound too.
    push(&mut ring, COALESCE_AFTER + JOINED_BYTES_MAX);
    assert_eq!(
        ring.updates.iter().map(|it| it.bytes).max(),
        Some(JOINED_BYTES_MAX)
    );
    assert_eq!(ring.bytes, all(&held));
}

#[test]
fn a_report_of_progress_replaces_the_one_before_unless_that_was_read() {
    let held = Arc::default();
    let mut ring = ring(&held);
    let report = |call: &str, done: u32| {
        turn_event(EventBody::ToolProgress {
            id: CallId::new(call),
            progress: rondo_types::ToolProgress {
                done: Some(f64::from(done)),
                ..Default::default()
            },
        })
    };
    let mut stand = ring.stand_after(place(0), 0);
    for (call, done) in [("a", 1), ("a", 2), ("b", 3)] {
        ring.push(place(0), report(call, done));
    }
    assert_eq!(text_of(&mut ring, &mut stand), ["Some(2.0)", "Some(3.0)"]);
    ring.push(place(0), report("b", 4));
    assert_eq!(text_of(&mut ring, &mut stand), ["Some(4.0)"]);
    assert_eq!(ring.bytes, all(&held));
}
