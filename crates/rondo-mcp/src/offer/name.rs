//! The names that models call tools by: `mcp__server__tool`.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Prefix of the names of all tools of servers.
pub const PREFIX: &str = "mcp__";
/// The bound on a name, as every provider has it.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// Digits of the hash of a name that could not be taken as it is.
const HASH_DIGITS: usize = 8;

/// Returns the name of a server's tool: `mcp__server__tool`. If the tool's own name has characters that no provider
/// takes, or is too long, it is changed, cut, and followed by a hash of both names, so that no two are the same.
///
/// The server's name has no `__` in it, so that the text before the second `__` tells the server.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    let plain: String = tool
        .chars()
        .map(|it| if is_plain(it) { it } else { '_' })
        .collect();
    let name = format!("{PREFIX}{server}__{plain}");
    if plain == tool && !tool.is_empty() && name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let hash = HEXLOWER.encode(&Sha256::digest(format!("{server}\0{tool}")));
    let hash = hash.get(..HASH_DIGITS).unwrap_or_default();
    let kept = name
        .get(..NAME_BYTES_MAX - HASH_DIGITS - 1)
        .unwrap_or(&name);
    format!("{kept}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_server_and_tool_within_64_characters() {
        assert_eq!(tool_name("git", "list_issues"), "mcp__git__list_issues");
        for length in [51, 52, 53, 54, 500] {
            let tool = "t".repeat(length);
            let name = tool_name("git", &tool);
            assert!(name.len() <= NAME_BYTES_MAX, "{name}");
            assert_eq!(
                name == format!("mcp__git__{tool}"),
                length <= 54,
                "{length}"
            );
        }
        assert_eq!(tool_name("git", &"t".repeat(55)).len(), NAME_BYTES_MAX);
    }

    #[test]
    fn names_that_would_collide_are_told_apart() {
        let long = "t".repeat(100);
        let names = [
            tool_name("s", "a.b"),
            tool_name("s", "a_b"),
            tool_name("s", "a b"),
            tool_name("s", "a\u{1b}b"),
            tool_name("s", "ä"),
            tool_name("s", ""),
            tool_name("s", &format!("{long}1")),
            tool_name("s", &format!("{long}2")),
        ];
        for (at, name) in names.iter().enumerate() {
            let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
            assert!(name.chars().all(is_plain), "{name}");
            assert!(!names[..at].contains(name), "{name}");
        }
    }
}
