//! Tools that run on the provider's side: `server_tool_use` and `mcp_tool_use`, answered by
//! `web_search_tool_result` and its like in the same message, or in the next if it was paused.

use rondo_types::Part;
use serde::Deserialize;

/// Suffix of the types of provider calls; `tool_use` itself is a call of ours and not an opaque part.
const CALL_SUFFIX: &str = "_tool_use";

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    tool_use_id: String,
}

/// Returns the indices of calls that have no result in their message.
pub(super) fn open_calls(parts: &[Part]) -> Vec<usize> {
    let blocks: Vec<_> = parts
        .iter()
        .enumerate()
        .filter_map(|(index, part)| match part {
            Part::Opaque(opaque) => {
                let block = serde_json::from_str::<Block>(&opaque.json).ok()?;
                Some((index, block))
            }
            _ => None,
        })
        .collect();
    let answered = |id: &str| blocks.iter().any(|(_, it)| it.tool_use_id == id);
    let open = |it: &Block| it.kind.ends_with(CALL_SUFFIX) && !answered(&it.id);
    let open = blocks.iter().filter(|(_, block)| open(block));
    open.map(|(index, _)| *index).collect()
}
