//! The repairs of a call's arguments, as lines for the user and the model.

use crate::text::{QUOTE_CHARS_MAX, clip};
use std::fmt;

/// The bound on repairs reported of one call; a last one says how many more there were.
pub const REPAIRS_MAX: usize = 32;

/// The bound on a path quoted in a repair, in characters.
const PATH_CHARS_MAX: usize = 160;

/// One change made to the arguments of a call; its `Display` is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The JSON pointer of the changed value; empty for the whole.
    pub path: String,
    /// The former value, shortened.
    pub from: String,
    /// The new value, shortened; empty if it was removed.
    pub to: String,
    /// The kind of change.
    pub kind: RepairKind,
}

/// Kinds of repairs, the certain ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RepairKind {
    /// A byte order mark or blanks that JSON does not know around the text.
    Blank,
    /// A code fence around the text.
    Fence,
    /// A comma before a closing bracket.
    TrailingComma,
    /// Single quotes for double quotes.
    SingleQuotes,
    /// A key without quotes.
    BareKey,
    /// `True`, `False` or `None`.
    PythonWord,
    /// A line break or a tab written raw inside a string.
    RawControl,
    /// The object written as JSON inside a JSON string.
    Doubled,
    /// No arguments at all, for a tool that needs none.
    Empty,
    /// A number or boolean written as a string.
    StringToScalar,
    /// A whole number written with a fraction of zero.
    FloatToInteger,
    /// An integer or boolean if a string is expected.
    ScalarToString,
    /// An object written as JSON inside a string.
    StringToObject,
    /// `null` for an optional property.
    NullDropped,
    /// A number with a fraction if a string is expected: `1.10` was read as `1.1`.
    FloatToString,
    /// An array written as JSON inside a string, which could also be the one element.
    StringToArray,
    /// A single value if an array is expected.
    Wrapped,
    /// A key that the schema forbids.
    KeyDropped,
    /// More repairs than are reported.
    Omitted,
}

impl RepairKind {
    /// Returns whether the change goes beyond syntax and lossless coercion, so that what would run
    /// may differ from what the model meant.
    #[must_use]
    pub fn changes_meaning(self) -> bool {
        match self {
            Self::FloatToString | Self::StringToArray | Self::Wrapped | Self::KeyDropped => true,
            Self::Blank
            | Self::Fence
            | Self::TrailingComma
            | Self::SingleQuotes
            | Self::BareKey
            | Self::PythonWord
            | Self::RawControl
            | Self::Doubled
            | Self::Empty
            | Self::StringToScalar
            | Self::FloatToInteger
            | Self::ScalarToString
            | Self::StringToObject
            | Self::NullDropped
            | Self::Omitted => false,
        }
    }

    /// Returns the change in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blank => "blanks around the text removed",
            Self::Fence => "code fence removed",
            Self::TrailingComma => "trailing comma removed",
            Self::SingleQuotes => "single quotes to double quotes",
            Self::BareKey => "key quoted",
            Self::PythonWord => "python word to json",
            Self::RawControl => "raw line break or tab escaped",
            Self::Doubled => "doubled json decoded",
            Self::Empty => "no arguments to an empty object",
            Self::StringToScalar => "string to scalar",
            Self::FloatToInteger => "float to integer",
            Self::ScalarToString => "scalar to string",
            Self::StringToObject => "string to object",
            Self::NullDropped => "null for an optional property dropped",
            Self::FloatToString => "float to string",
            Self::StringToArray => "string to array",
            Self::Wrapped => "single value to array",
            Self::KeyDropped => "unknown key dropped",
            Self::Omitted => "not listed",
        }
    }
}

/// Collects repairs within the bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repairs {
    kept: Vec<Repair>,
    omitted: usize,
    changes_meaning: bool,
}

impl Repairs {
    pub(crate) fn push(&mut self, repair: Repair) {
        self.changes_meaning |= repair.kind.changes_meaning();
        if self.kept.len() < REPAIRS_MAX {
            self.kept.push(repair);
        } else {
            self.omitted += 1;
        }
    }

    pub(crate) fn extend(&mut self, repairs: impl IntoIterator<Item = Repair>) {
        repairs.into_iter().for_each(|repair| self.push(repair));
    }

    /// Returns the repairs, and whether any of them changes the meaning.
    pub(crate) fn finish(mut self) -> (Vec<Repair>, bool) {
        if self.omitted > 0 {
            let count = format!("{} more changes", self.omitted);
            self.kept
                .push(Repair::new("", &count, "", RepairKind::Omitted));
        }
        (self.kept, self.changes_meaning)
    }
}

impl Repair {
    pub(crate) fn new(path: &str, from: &str, to: &str, kind: RepairKind) -> Self {
        Self {
            path: clip(path, PATH_CHARS_MAX),
            from: clip(from, QUOTE_CHARS_MAX),
            to: clip(to, QUOTE_CHARS_MAX),
            kind,
        }
    }

    /// Records a change of the text rather than of a value.
    pub(crate) fn syntax(from: &str, to: &str, kind: RepairKind) -> Self {
        Self::new("", from, to, kind)
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "/"
        } else {
            self.path.as_str()
        };
        let to = if self.to.is_empty() {
            "nothing"
        } else {
            self.to.as_str()
        };
        let (path, from, to) = (one_line(path), one_line(&self.from), one_line(to));
        write!(f, "{path}: {from} -> {to} ({})", self.kind.as_str())
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t")
}
