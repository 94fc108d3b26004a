//! Programs that are named by patterns of files: the shell puts the names that fit in their place.

use super::found::Analysis;
use super::words::Value;
use glob::Pattern;

/// Characters that make a word a pattern.
const WILD: [char; 3] = ['*', '?', '['];
/// The most patterns that are looked at; with more, any program may be meant.
const PATTERNS_MAX: usize = 32;

/// The patterns that may name a program which another one runs; `None` if there are too many.
pub(crate) struct Patterns<'a>(Option<Vec<&'a str>>);

impl Analysis {
    /// Returns the patterns that may name a program which another one runs.
    pub(crate) fn patterns(&self) -> Patterns<'_> {
        let words = self.simple.iter().flat_map(|simple| &simple.words);
        let words = words.filter(|_| self.runs_others()).flat_map(of_word);
        let inputs = self.inputs.iter().filter(|_| self.runs_others());
        let texts = inputs.chain(&self.assigned).map(String::as_str);
        let all = words.chain(texts.flat_map(of_text));
        let all: Vec<&str> = all.take(PATTERNS_MAX + 1).collect();
        Patterns((all.len() <= PATTERNS_MAX).then_some(all))
    }
}

impl Patterns<'_> {
    /// Returns whether one may become the name of a program; at its end, `*` is any rest of the name.
    pub(crate) fn may_mean(&self, program: &str) -> bool {
        let Some(all) = &self.0 else {
            return true;
        };
        all.iter().any(|pattern| may_mean(pattern, program))
    }
}

fn of_word(word: &Value) -> Vec<&str> {
    match word {
        Value::Pattern(text) => vec![text.as_str()],
        Value::Text(text) => of_text(text).collect(),
        Value::Harmless | Value::Dynamic => Vec::new(),
    }
}

/// Programs hand text to shells too, in which a pattern means a program by a path.
fn of_text(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split(|c: char| c.is_whitespace() || "'\"`;|&()<>{}=!,".contains(c));
    pieces.filter(|piece| piece.contains('/') && piece.contains(WILD))
}

fn may_mean(pattern: &str, program: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    let Some(at) = name.find(WILD) else {
        return false;
    };
    match program.strip_suffix('*') {
        // One that begins with a wildcard means files in general, unless it looks where programs are.
        Some(_) if at == 0 => pattern.starts_with('/'),
        Some(begin) => name
            .get(..at)
            .is_some_and(|known| begin.starts_with(known) || known.starts_with(begin)),
        None => widened(name).is_none_or(|it| it.matches(program)),
    }
}

/// Takes any text for what is in brackets: the shell knows more ways to write that.
fn widened(name: &str) -> Option<Pattern> {
    let brackets = name.find('[').zip(name.rfind(']'));
    let widened = match brackets.filter(|(open, close)| open < close) {
        Some((open, close)) => format!("{}*{}", name.get(..open)?, name.get(close + 1..)?),
        None => name.replace('[', "*"),
    };
    Pattern::new(&widened).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_the_programs_that_fit_it_and_files_mean_none() {
        for (pattern, program, expected) in [
            ("/bin/r?", "rm", true),
            ("/bin/[r]m", "rm", true),
            ("/bin/[^a]m", "rm", true),
            ("/bin/[[:alpha:]]m", "rm", true),
            ("r[", "rm", true),
            ("*", "rm", true),
            ("/bin/**", "rm", true),
            ("/bin/***", "rm", true),
            ("tests/*.py", "rm", false),
            ("/bin/rm", "rm", false),
            ("/bi?/rm", "rm", false),
            ("/sbin/mkf*", "mkfs.*", true),
            ("/sbin/mkfs.e?t4", "mkfs.*", true),
            ("/sbin/?kfs.ext4", "mkfs.*", true),
            ("tests/*.py", "rm.*", false),
        ] {
            assert_eq!(may_mean(pattern, program), expected, "{pattern} {program}");
        }
    }
}
