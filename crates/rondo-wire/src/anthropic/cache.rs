//! Places the cache marks of a request.

use super::messages::Turn;
use crate::json::{Json, set};

/// Marks the ends of what stays the same from request to request: tools, system, and the last two
/// user messages. The provider takes four marks; the last but one finds what the request before
/// wrote, and the last writes for the next.
pub(super) fn mark<'a>(tools: &mut [Json<'a>], system: &mut [Json<'a>], turns: &mut [Turn<'a>]) {
    mark_last(tools);
    mark_last(system);
    let users = turns.iter_mut().rev().filter(|turn| turn.is_user());
    for turn in users.take(2) {
        mark_last(turn.last_blocks());
    }
}

fn mark_last(blocks: &mut [Json<'_>]) {
    if let Some(Json::Object(fields)) = blocks.last_mut() {
        let ephemeral = Json::object([("type", Json::str("ephemeral"))]);
        set(fields, "cache_control", ephemeral);
    }
}
