//! Input that the parser and bash may read differently, or that would cost too much to parse.

use super::{COMMAND_BYTES_MAX, OPENERS_MAX};

/// Parentheses nest exponentially in the parser: each may begin arithmetic or a subshell.
const PARENTHESES_DEPTH_MAX: usize = 6;

const COMPOUND_WORDS: [&str; 7] = ["if", "while", "until", "for", "case", "select", "function"];

/// Refuses what is not safe to parse.
pub(super) fn check(command: &str) -> Result<(), &'static str> {
    if command.len() > COMMAND_BYTES_MAX {
        return Err("it is too long to be judged");
    }
    if command.chars().any(is_odd) {
        return Err("it contains unusual white space or control characters");
    }
    if command.contains("\\\n") {
        return Err("it continues a line");
    }
    if begins_comment(command) {
        return Err("it may contain a comment");
    }
    if is_deep(command) {
        return Err("it is nested too deeply to be judged");
    }
    Ok(())
}

/// Returns whether parsing could take more stack, or longer, than there is.
pub(super) fn is_deep(command: &str) -> bool {
    let too_many = ['(', '{', '[', '`', '<']
        .iter()
        .any(|opener| command.matches(*opener).count() > OPENERS_MAX);
    let compounds = command
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| COMPOUND_WORDS.contains(word))
        .count();
    too_many || compounds > OPENERS_MAX || depth(command) > PARENTHESES_DEPTH_MAX
}

/// Bash separates words at spaces and tabs only; other white space is part of a word.
fn is_odd(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn begins_comment(command: &str) -> bool {
    let mut before = ' ';
    for c in command.chars() {
        if c == '#' && (before.is_whitespace() || ";&|()<>`{".contains(before)) {
            // `$(#` cannot be told from a comment either; `${#x}` is no comment and refused later.
            return true;
        }
        before = c;
    }
    false
}

fn depth(command: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in command.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
