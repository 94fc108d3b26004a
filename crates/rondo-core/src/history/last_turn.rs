//! Facts in a history about the turns behind it.

use rondo_types::{CallId, Transcript};

/// Digits of a turn, and of step and index together, in a usual call id: see [`CallId::generated`].
const TURN_DIGITS: usize = 3;
const REST_DIGITS: usize = 5;

/// Returns the number of the latest turn whose calls are in a history; 0 if there are none. A
/// history may have lost messages, so their count says little.
#[must_use]
pub fn last_turn(history: &Transcript) -> u32 {
    let calls = history.iter().flat_map(|message| message.tool_calls());
    let turns = calls.filter_map(|call| turn_of(&call.id));
    turns.max().unwrap_or_default()
}

/// Reads the turn out of a generated id.
fn turn_of(id: &CallId) -> Option<u32> {
    let fields = id.as_str().strip_prefix('r')?;
    let digits = match fields.strip_prefix('-') {
        Some(long) => match long.split_once('-') {
            Some((turn, _)) => turn,
            None => long.get(..long.len().checked_sub(REST_DIGITS)?)?,
        },
        None => fields.get(..TURN_DIGITS)?,
    };
    u32::from_str_radix(digits, 36).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_is_read_out_of_every_id_that_is_made() {
        for turn in [0, 1, 35, 36, 46_655, 46_656, u32::MAX] {
            for (step, index) in [(0, 0), (46_655, 1_295)] {
                let id = CallId::generated(turn, step, index);
                assert_eq!(turn_of(&id), Some(turn), "{id}");
            }
        }
        // Past three digits a step has a separator of its own.
        assert_eq!(turn_of(&CallId::generated(7, 46_656, 0)), Some(7));
        for other in ["", "r", "r-", "r-1", "call_1", "röö"] {
            assert_eq!(turn_of(&CallId::new(other)), None, "{other}");
        }
    }
}
