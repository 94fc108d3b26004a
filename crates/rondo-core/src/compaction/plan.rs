//! Choice of the messages that are dropped or shortened, from their sizes alone.

use super::size::{message_bytes, size, transcript_bytes};
use super::words::{dropped_note, is_summary, steps_note};
use super::{Change, Compaction};
use rondo_types::{Message, Role, Transcript};
use std::sync::Arc;

/// Bytes that an older tool result keeps when it makes room.
const OLD_RESULT_BYTES: u32 = 2048;
/// Older steps smaller than this, in bytes, are not dropped, since a note replaces them.
const STEPS_BYTES_MIN: u64 = 256;
/// Bytes that any tool result keeps.
const RESULT_BYTES_MIN: u64 = 256;

/// How large the messages may be, in bytes as [`transcript_bytes`] counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextBudget {
    /// The size above which something must be shortened or dropped.
    pub(crate) limit: u64,
    /// The size to reach once the limit is exceeded.
    pub(crate) target: u64,
}

/// Returns the beginnings of groups: each message of the user's own.
fn groups(transcript: &Transcript) -> Vec<usize> {
    let messages = transcript.iter().enumerate();
    let begins = messages.filter(|(_, message)| message.role == Role::User && !message.synthetic);
    begins.map(|(place, _)| place).collect()
}

/// Returns the size of each group in bytes. Messages before the first group belong to it.
pub(crate) fn group_bytes(transcript: &Transcript) -> Vec<u64> {
    let mut begins = groups(transcript);
    if let Some(first) = begins.first_mut() {
        *first = 0;
    }
    let ends = begins.iter().skip(1).copied().chain([transcript.len()]);
    let ranges = begins.iter().zip(ends);
    ranges
        .map(|(from, to)| bytes_of(transcript, *from, to))
        .collect()
}

/// Returns the index of the first message to keep, so that the latest groups fit `target` bytes. The last
/// group is always kept. `None` if no older group could be dropped.
pub(crate) fn first_kept_by_size(transcript: &Transcript, target: u64) -> Option<usize> {
    let groups = groups(transcript);
    let (first, mut keep) = (*groups.first()?, *groups.last()?);
    for begin in groups.iter().rev() {
        let kept: u64 = bytes_of(transcript, *begin, transcript.len());
        if kept > target {
            break;
        }
        keep = (*begin).min(keep);
    }
    (keep > first).then_some(keep)
}

/// How many messages of the past a turn begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryBound {
    /// The most messages that stay as they are.
    pub(crate) max: usize,
    /// How many stay once there are more; `None` means `max`, and that a longer exchange is dropped whole.
    pub(crate) keep: Option<usize>,
}

/// Returns the changes that leave so many messages, in whole groups, in the order in which they are applied.
///
/// If `keep` is set and the latest group is longer than that, it keeps the user's message, a note and its latest
/// steps, so that the latest exchange is never forgotten whole.
pub(crate) fn limit_count(transcript: &Transcript, bound: HistoryBound) -> Vec<Compaction> {
    let len = transcript.len();
    let keep = bound.keep.unwrap_or(bound.max).min(bound.max);
    if len <= bound.max {
        return Vec::new();
    }
    let reason = format!("a turn begins with at most {keep} messages of the past");
    let dropped = |from: usize, to: usize, note: Option<Message>| Compaction {
        from: place(from),
        to: place(to),
        change: Change::Dropped {
            note,
            reason: reason.clone(),
        },
    };
    let groups = groups(transcript);
    if let Some(begin) = groups.iter().find(|begin| **begin >= len - keep) {
        return vec![dropped(0, *begin, None)];
    }
    let Some(last) = groups.last().filter(|_| bound.keep.is_some()) else {
        return vec![dropped(0, len, None)];
    };
    // The user's message and the note stay, too.
    let earliest = len.saturating_sub(keep.saturating_sub(2));
    let is_step = |at: &usize| {
        let message = transcript.get(*at);
        message.is_some_and(|message| message.role == Role::Assistant)
    };
    let steps_from = (earliest.max(last + 1)..len).find(is_step).unwrap_or(len);
    let note = steps_note(steps_from - last - 1);
    let mut changes = vec![dropped(last + 1, steps_from, Some(note))];
    if *last > 0 {
        changes.push(dropped(0, *last, None));
    }
    changes
}

/// Builds the change that drops the messages before `keep`, except an earlier summary if it fits.
pub(crate) fn drop_groups(
    transcript: &Transcript,
    keep: usize,
    target: u64,
    reason: String,
) -> Compaction {
    let summary = transcript.first().filter(|first| is_summary(first));
    let fits = summary.is_some_and(|summary| message_bytes(summary) <= target / 4);
    let from = usize::from(fits && keep > 0);
    Compaction {
        from: place(from),
        to: place(keep),
        change: Change::Dropped {
            note: Some(dropped_note(keep - from)),
            reason,
        },
    }
}

/// Returns the messages before `to`, as they are sent to be summarized. If they do not fit `limit`, their
/// results are shortened, then their oldest groups are dropped. `None` if that is not enough.
pub(crate) fn summary_input(transcript: &Transcript, to: usize, limit: u64) -> Option<Transcript> {
    let mut input: Transcript = transcript.iter().take(to).cloned().collect();
    if transcript_bytes(&input) > limit {
        shortened(0, input.len(), OLD_RESULT_BYTES).apply(&mut input);
    }
    while transcript_bytes(&input) > limit {
        let next = groups(&input).into_iter().find(|begin| *begin > 0)?;
        input.drain(..next);
    }
    Some(input)
}

/// Returns the changes that make the messages fit when no older group is left to drop: results are shortened,
/// the oldest first, then the oldest steps of the last group are dropped.
///
/// The user's last message and the latest step are kept, so the rest may still be too large if the message,
/// or the step without its results, is.
pub(crate) fn shorten_last_group(
    transcript: &Transcript,
    budget: ContextBudget,
) -> Vec<Compaction> {
    let mut shortening = Shortening {
        left: transcript.clone(),
        changes: Vec::new(),
    };
    if transcript_bytes(transcript) > budget.limit {
        shortening.older_results(budget.target);
        shortening.latest_results(budget.target / 2, budget.target);
        shortening.older_steps(budget.target);
        shortening.latest_results(0, budget.limit);
    }
    shortening.changes
}

struct Shortening {
    left: Transcript,
    changes: Vec<Compaction>,
}

impl Shortening {
    fn make(&mut self, change: Compaction) {
        let before = self.left.clone();
        change.apply(&mut self.left);
        let same = |(one, other): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(one, other);
        let is_same = before.len() == self.left.len() && before.iter().zip(&self.left).all(same);
        if !is_same {
            self.changes.push(change);
        }
    }

    /// Shortens results, the oldest first, until the transcript fits.
    fn older_results(&mut self, target: u64) {
        let latest = self.latest_step();
        let mut left = transcript_bytes(&self.left);
        let mut to = 0;
        while left > target && to < latest {
            let mut one: Transcript = self.left.get(to).cloned().into_iter().collect();
            let before = transcript_bytes(&one);
            shortened(0, 1, OLD_RESULT_BYTES).apply(&mut one);
            left = left.saturating_sub(before.saturating_sub(transcript_bytes(&one)));
            to += 1;
        }
        self.make(shortened(0, to, OLD_RESULT_BYTES));
    }

    /// Shortens the results of the latest step, if the step takes more than `share` and all of it
    /// more than `target`.
    fn latest_results(&mut self, share: u64, target: u64) {
        let (latest, end) = (self.latest_step(), self.left.len());
        let step = bytes_of(&self.left, latest, end);
        let all = transcript_bytes(&self.left);
        if all <= target || step <= share {
            return;
        }
        let results = self.left.iter().skip(latest).flat_map(|it| it.results());
        let sizes: Vec<u64> = results.map(|it| size(it.content.to_text().len())).collect();
        let asked = step.saturating_sub(sizes.iter().sum());
        let others = all - step;
        let allowed = share.max(target.saturating_sub(others));
        let each = fair_share(&sizes, allowed.saturating_sub(asked)).max(RESULT_BYTES_MIN);
        let bytes = u32::try_from(each).unwrap_or(u32::MAX);
        self.make(shortened(latest, end, bytes));
    }

    /// Drops steps of the last group, the oldest first.
    fn older_steps(&mut self, target: u64) {
        let Some(user) = groups(&self.left).last().copied() else {
            return;
        };
        let latest = self.latest_step();
        let mut left = transcript_bytes(&self.left);
        let (from, mut to) = (user + 1, user + 1);
        while left > target && to < latest {
            left = left.saturating_sub(bytes_of(&self.left, to, to + 1));
            to += 1;
            while to < latest && self.is_result(to) {
                left = left.saturating_sub(bytes_of(&self.left, to, to + 1));
                to += 1;
            }
        }
        if bytes_of(&self.left, from, to) > STEPS_BYTES_MIN {
            self.make(Compaction {
                from: place(from),
                to: place(to),
                change: Change::Dropped {
                    note: Some(steps_note(to - from)),
                    reason: "the turn by itself was too long".to_owned(),
                },
            });
        }
    }

    fn is_result(&self, at: usize) -> bool {
        let message = self.left.get(at);
        message.is_some_and(|message| message.role == Role::Tool)
    }

    /// Returns the beginning of the latest step: the last message of the model.
    fn latest_step(&self) -> usize {
        let last = |message: &Arc<Message>| message.role == Role::Assistant;
        self.left.iter().rposition(last).unwrap_or(self.left.len())
    }
}

/// Returns the bound on each of some sizes under which they take `allowed` together.
fn fair_share(sizes: &[u64], allowed: u64) -> u64 {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut left = allowed;
    for (done, bytes) in sizes.iter().enumerate() {
        let share = left / size(sizes.len() - done);
        if *bytes > share {
            return share;
        }
        left -= bytes;
    }
    u64::from(u32::MAX)
}

fn shortened(from: usize, to: usize, bytes: u32) -> Compaction {
    Compaction {
        from: place(from),
        to: place(to),
        change: Change::Cut { bytes },
    }
}

fn bytes_of(transcript: &Transcript, from: usize, to: usize) -> u64 {
    let messages = transcript.iter().take(to).skip(from);
    messages.map(|message| message_bytes(message)).sum()
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
