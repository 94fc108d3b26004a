//! The options of read-only programs: those that are known, and no others.
//!
//! Long options count only when written in full, so that no abbreviation means something else.

/// Options of a program.
pub(super) struct Options {
    /// Short options without a value.
    pub(super) flags: &'static str,
    /// Short options whose value is the rest of the word or the next word.
    pub(super) values: &'static str,
    /// Short options whose value is the next word, and which end their own word.
    pub(super) separate: &'static str,
    /// Short options whose value, if any, is the rest of the word.
    pub(super) attached: &'static str,
    /// Long options without a value, or with one after `=`.
    pub(super) long: &'static [&'static str],
    /// Long options whose value is after `=` or is the next word.
    pub(super) long_values: &'static [&'static str],
    /// Set if `-5` is an option. With letters behind the digits it means something else to each
    /// program, and takes a word or none.
    pub(super) numbers: bool,
}

/// The arguments of a program, sorted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParsedArgs<'a> {
    /// The options by name: one character, or the long name.
    pub(super) options: Vec<&'a str>,
    /// Words that are neither options nor values of options, by index.
    pub(super) operands: Vec<usize>,
}

/// Reads words; those without known text are operands, and must not be where a value is due.
///
/// Some programs read no options behind their first operand (`awk`, all of the BSDs', those of GNU
/// under `POSIXLY_CORRECT`), so that a value there may be one more operand, and counts as one too.
pub(super) fn read<'a>(
    words: &[Option<&'a str>],
    known: &Options,
) -> Result<ParsedArgs<'a>, String> {
    let mut args = ParsedArgs {
        options: Vec::new(),
        operands: Vec::new(),
    };
    let mut words = words.iter().enumerate();
    let mut ended = false;
    while let Some((index, word)) = words.next() {
        let option = word.filter(|text| !ended && text.len() > 1 && text.starts_with('-'));
        let Some(option) = option else {
            args.operands.push(index);
            continue;
        };
        if option == "--" {
            ended = true;
            continue;
        }
        let needs_value = match option.strip_prefix("--") {
            Some(long) => read_long(long, known, &mut args)?,
            None => read_short(option, known, &mut args)?,
        };
        // Programs do not agree whether `--` can be a value.
        let is_value = |word: &Option<&str>| word.is_some_and(|text| text != "--");
        if needs_value {
            let value = words.next().filter(|(_, word)| is_value(word));
            let (at, _) = value.ok_or_else(|| format!("the value of `{option}` is not known"))?;
            if !args.operands.is_empty() {
                args.operands.push(at);
            }
        }
    }
    Ok(args)
}

fn read_long<'a>(
    long: &'a str,
    known: &Options,
    args: &mut ParsedArgs<'a>,
) -> Result<bool, String> {
    let (name, value) = long
        .split_once('=')
        .map_or((long, None), |(name, value)| (name, Some(value)));
    args.options.push(name);
    if known.long_values.contains(&name) {
        Ok(value.is_none())
    } else if known.long.contains(&name) {
        Ok(false)
    } else {
        Err(format!(
            "the option `--{name}` is not known to be read-only"
        ))
    }
}

fn read_short<'a>(
    word: &'a str,
    known: &Options,
    args: &mut ParsedArgs<'a>,
) -> Result<bool, String> {
    let letters = word.strip_prefix('-').unwrap_or(word);
    if known.numbers && letters.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(false);
    }
    for (at, letter) in letters.char_indices() {
        let end = at + letter.len_utf8();
        args.options.push(letters.get(at..end).unwrap_or_default());
        if known.values.contains(letter) {
            return Ok(end == letters.len());
        }
        if known.separate.contains(letter) && end == letters.len() {
            return Ok(true);
        }
        if known.attached.contains(letter) {
            return Ok(false);
        }
        if !known.flags.contains(letter) {
            return Err(format!(
                "the option `-{letter}` is not known to be read-only"
            ));
        }
    }
    Ok(false)
}
