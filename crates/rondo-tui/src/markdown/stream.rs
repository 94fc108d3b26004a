//! Markdown that is still being written.

use super::blocks;
use crate::text::{Piece, Row};
use crate::theme::Theme;

/// Bytes of an unfinished block after which it is cut at its last line: nothing is laid out again and again that
/// has no end.
const BLOCK_BYTES_MAX: usize = 16 << 10;

/// Follows a text that grows. Blocks that are finished are laid out once.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    width: usize,
    /// Bytes of the source whose rows stay.
    done: usize,
    /// Rows that stay.
    kept: usize,
    /// The line that opened the code in which they end, with its line break; else empty.
    fence: String,
}

impl Stream {
    /// Brings rows that were laid out for the beginning of a text up to all of it, each behind a margin. Rows that are
    /// none of this text's are left out.
    pub(crate) fn update(
        &mut self,
        rows: &mut Vec<Row>,
        source: &str,
        width: usize,
        theme: &Theme,
        margin: &Piece,
    ) {
        if self.width != width || self.done > source.len() || rows.len() < self.kept {
            *self = Self {
                width,
                ..Self::default()
            };
        }
        rows.truncate(self.kept);
        let rest = source.get(self.done..).unwrap_or_default();
        let rest = format!("{}{rest}", self.fence);
        let end = match finished(&rest) {
            // One line of code has no end.
            end if end > 0 && end <= self.fence.len() => rest.len(),
            end => end,
        };
        let (whole, mut after) = rest.split_at_checked(end).unwrap_or((&rest, ""));
        if end > 0 {
            self.append(rows, blocks::rows(whole, width, theme), margin);
            self.done += end.saturating_sub(self.fence.len());
            self.kept = rows.len();
            let open = open_fence(whole);
            self.fence = open.map_or_else(String::new, |line| format!("{line}\n"));
        }
        let code;
        if end > 0 && !self.fence.is_empty() {
            code = format!("{}{after}", self.fence);
            after = &code;
        }
        self.append(rows, blocks::rows(after, width, theme), margin);
    }

    /// Adds rows, after an empty one unless they continue with code.
    fn append(&self, rows: &mut Vec<Row>, more: Vec<Row>, margin: &Piece) {
        if !rows.is_empty() && !more.is_empty() && self.fence.is_empty() {
            rows.push(Row::default());
        }
        rows.extend(more.into_iter().map(|mut row| {
            row.gutter.insert(0, margin.clone());
            row
        }));
    }
}

/// Returns the bytes of the blocks that are finished: those before the last empty line outside of code, behind which
/// a block begins at the margin.
pub(super) fn finished(text: &str) -> usize {
    let (mut end, mut at) = (0, 0);
    let mut fence: Option<(char, usize)> = None;
    let mut was_empty = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let is_at_margin = !bare.is_empty() && !bare.starts_with([' ', '\t']);
        // A line that is not whole yet may become anything.
        let is_whole = line.ends_with('\n');
        if fence.is_none() && was_empty && is_at_margin && is_whole && !goes_on(bare) {
            end = at;
        }
        fence = fence_after(fence, bare);
        was_empty = bare.is_empty();
        at += line.len();
    }
    match text.len() - end > BLOCK_BYTES_MAX {
        true => end.max(cut(text, end)),
        false => end,
    }
}

/// Returns whether a line may continue with the block before an empty line, such as another item of its list.
fn goes_on(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '+'])
        || (digits.len() < line.len() && digits.starts_with(['.', ')']))
}

fn fence_after(open: Option<(char, usize)>, line: &str) -> Option<(char, usize)> {
    let line = line.trim_start();
    let Some(sign) = line.chars().next().filter(|it| matches!(it, '`' | '~')) else {
        return open;
    };
    let count = line.chars().take_while(|it| *it == sign).count();
    // Otherwise it is code within the line.
    let opens = sign != '`' || !line.trim_start_matches('`').contains('`');
    match open {
        None if count >= 3 && opens => Some((sign, count)),
        Some((of, least)) if of == sign && count >= least && line.len() == count => None,
        open => open,
    }
}

/// Returns the line that opened the code which is not closed at the end of a text.
pub(super) fn open_fence(text: &str) -> Option<&str> {
    let (mut fence, mut opened) = (None, "");
    for line in text.lines() {
        let after = fence_after(fence, line.trim_end());
        if fence.is_none() && after.is_some() {
            opened = line;
        }
        fence = after;
    }
    fence.map(|_| opened)
}

/// Returns the end of the last line of a block that is too long, or else of its last word.
fn cut(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let at = rest.rfind('\n').or_else(|| rest.rfind(' '));
    from + at.map_or(rest.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;

    const TEXT: &str = "# One\n\nA *few* words.\n\n- a\n\n- b\n  more\n\n1. x\n\n2. y\n\n```rust\nfn a() {}\n\nfn b() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd.\n";

    #[test]
    fn a_text_that_grows_ends_up_as_it_would_at_once_wherever_it_is_cut() {
        let theme = Theme::of(Colours::Dark);
        let whole = blocks::rows(TEXT, 30, &theme);
        let margin = Piece::new("", theme.text);
        for step in 1..30 {
            let mut stream = Stream::default();
            let mut rows = Vec::new();
            let mut at = 0;
            while at < TEXT.len() {
                at = TEXT.floor_char_boundary((at + step).min(TEXT.len()));
                stream.update(&mut rows, &TEXT[..at], 30, &theme, &margin);
            }
            let text = |rows: &[Row]| rows.iter().map(Row::whole).collect::<Vec<_>>();
            assert_eq!(text(&rows), text(&whole), "{step}");
        }
    }

    #[test]
    fn code_that_is_cut_stays_code() {
        let theme = Theme::of(Colours::Dark);
        let margin = Piece::new("", theme.text);
        let code = "let *a* = `b`; # x\n".repeat(3_000);
        for step in [100, 7_000, 1 << 20] {
            let text = format!("Before.\n\n```rust\n{code}```\n\nAfter *it*.\n");
            let (mut stream, mut rows, mut at) = (Stream::default(), Vec::new(), 0);
            while at < text.len() {
                at = (at + step).min(text.len());
                stream.update(&mut rows, &text[..at], 80, &theme, &margin);
            }
            let shown: Vec<String> = rows.iter().map(Row::whole).collect();
            let lines = shown.iter().filter(|it| it.contains("let *a* = `b`; # x"));
            assert_eq!(lines.count(), 3_000, "{step}");
            let empty = shown.iter().filter(|it| it.trim().is_empty());
            assert_eq!(empty.count(), 2, "{step}");
            assert!(shown.last().unwrap().contains("After it."), "{step}");
        }
    }

    #[test]
    fn a_line_of_code_without_an_end_is_not_laid_out_again_and_again() {
        let theme = Theme::of(Colours::Dark);
        let (mut stream, mut text) = (Stream::default(), "```\n".to_owned());
        let (mut rows, margin) = (Vec::new(), Piece::new("", theme.text));
        for _ in 0..20 {
            text.push_str(&"word-".repeat(1_000));
            stream.update(&mut rows, &text, 80, &theme, &margin);
            // The line that opens the code is cut off first.
            assert!(text.len() - stream.done <= BLOCK_BYTES_MAX + 5_000);
        }
    }

    #[test]
    fn a_block_without_an_end_is_not_laid_out_again_and_again() {
        let theme = Theme::of(Colours::Dark);
        let (mut stream, mut text) = (Stream::default(), String::new());
        let (mut rows, margin) = (Vec::new(), Piece::new("", theme.text));
        for _ in 0..200 {
            text.push_str(&"word ".repeat(200));
            stream.update(&mut rows, &text, 80, &theme, &margin);
            assert!(text.len() - stream.done <= BLOCK_BYTES_MAX);
        }
    }
}
