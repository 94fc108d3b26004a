//! The values of settings that are neither text nor numbers.

use rondo_types::Effort;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A value that is one of a few words.
pub trait Word: Copy + 'static {
    /// All of them, in the order in which they are shown to people.
    const ALL: &'static [Meaning<Self>];

    /// Reads one.
    ///
    /// # Errors
    /// Names the words that there are.
    fn read(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|it| it.word == text);
        found.map(|it| it.value).ok_or_else(|| {
            let words: Vec<_> = Self::ALL
                .iter()
                .map(|it| format!("`{}`", it.word))
                .collect();
            format!("expected one of {}", words.join(", "))
        })
    }
}

/// One word, and what it stands for.
#[derive(Debug, Clone, Copy)]
pub struct Meaning<T> {
    /// The word, as typed.
    pub word: &'static str,
    /// The value that it stands for.
    pub value: T,
    /// Help text, one sentence.
    pub help: &'static str,
}

macro_rules! words {
    ($(
        $(#[doc = $about:literal])*
        $name:ident { $(#[doc = $help:literal] $variant:ident = $word:literal),* $(,)? }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        pub enum $name {
            $(
                #[doc = $help]
                #[serde(rename = $word)]
                $variant,
            )*
        }

        impl Word for $name {
            const ALL: &'static [Meaning<Self>] = &[
                $(Meaning { word: $word, value: Self::$variant, help: $help }),*
            ];
        }
    )*};
}

words! {
    /// When to use colors.
    ColorChoice {
        /// If the output is a terminal.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
    /// Format of standard output.
    OutputFormat {
        /// The answer.
        Text = "text",
        /// One `result` object.
        Json = "json",
        /// One object per event, with `result` as the last.
        StreamJson = "stream-json",
    }
    /// Whether records survive a power loss.
    DurabilityLevel {
        /// They do: each step waits for the disk.
        Full = "full",
        /// They only survive the end of the process.
        Normal = "normal",
    }
    /// What happens when a call needs approval.
    ApprovalMode {
        /// You are asked at the terminal; without one the call is denied.
        Ask = "ask",
        /// What stays inside the sandbox runs; you are asked about the rest.
        Auto = "auto",
        /// The call is denied.
        Deny = "deny",
        /// The turn waits, without a process, until `rondo answer`.
        Park = "park",
    }
    /// What commands may reach.
    SandboxChoice {
        /// Everything that you may.
        Off = "off",
        /// Files of the working directory and the system, to read; no network.
        ReadOnly = "read-only",
        /// The same, and the working directory to write.
        WorkspaceWrite = "workspace-write",
    }
    /// What searches the web.
    WebSearchChoice {
        /// Nothing.
        Off = "off",
        /// The model's provider, where it can.
        Model = "model",
        /// Brave's API.
        Brave = "brave",
        /// An instance of SearXNG.
        Searxng = "searxng",
    }
    /// What `rondo` without arguments opens at a terminal.
    ScreenChoice {
        /// The full screen, unless the terminal cannot show it.
        Auto = "auto",
        /// The full screen.
        Full = "full",
        /// The line prompt, `rondo repl`: also for screen readers.
        Inline = "inline",
    }
    /// What the mouse does in the full screen.
    MouseChoice {
        /// The wheel scrolls, and dragging selects.
        On = "on",
        /// The wheel scrolls; selecting is the terminal's own.
        Wheel = "wheel",
        /// Nothing is asked of the terminal.
        Off = "off",
    }
    /// Whether the full screen moves by itself.
    MotionChoice {
        /// A spinner turns while something works.
        On = "on",
        /// Nothing moves.
        Off = "off",
    }
    /// Colours of the full screen.
    ThemeChoice {
        /// As the terminal says that it is.
        Auto = "auto",
        /// True colours on a dark ground.
        Dark = "dark",
        /// True colours on a light ground.
        Light = "light",
        /// The terminal's own sixteen.
        Terminal = "terminal",
    }
    /// What the full screen leaves in the terminal's scrollback.
    PrintChoice {
        /// All that was not printed yet.
        All = "all",
        /// The last answer.
        Last = "last",
        /// Nothing.
        None = "none",
    }
    /// Editing keys of the prompt.
    EditKeys {
        /// Emacs, as in most shells.
        Emacs = "emacs",
        /// Vi.
        Vi = "vi",
    }
}

impl Word for Effort {
    const ALL: &'static [Meaning<Self>] = &[
        Meaning {
            word: "low",
            value: Self::Low,
            help: "Least reasoning.",
        },
        Meaning {
            word: "medium",
            value: Self::Medium,
            help: "Balanced.",
        },
        Meaning {
            word: "high",
            value: Self::High,
            help: "Most reasoning.",
        },
    ];
}

/// A length of time as people write it: numbers with `ms`, `s`, `m`, `h` or `d`, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TimeSpan(
    /// Never zero.
    pub Duration,
);

impl TryFrom<String> for TimeSpan {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for TimeSpan {
    /// Writes it as it is read, in the largest units that are exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ms = self.0.as_millis();
        for (unit, unit_ms) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1000),
            ("ms", 1),
        ] {
            let count = ms / unit_ms;
            ms %= unit_ms;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut total = Duration::ZERO;
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (piece, remaining) = split_piece(rest).ok_or_else(|| time_span_error(text))?;
            total = total
                .checked_add(piece)
                .ok_or_else(|| time_span_error(text))?;
            rest = remaining;
        }
        if total.is_zero() {
            return Err(time_span_error(text));
        }
        Ok(Self(total))
    }
}

fn split_piece(text: &str) -> Option<(Duration, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = text.split_at(digits);
    let letters = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    Some((Duration::from_millis(ms), rest))
}

fn time_span_error(text: &str) -> String {
    format!("`{text}` is no length of time such as `500ms`, `20s`, `2m` or `1h30m`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<TimeSpan>().ok().map(|span| span.0.as_millis());
        assert_eq!(read("500ms"), Some(500));
        assert_eq!(read("20s"), Some(20_000));
        assert_eq!(read("2m"), Some(120_000));
        assert_eq!(read("1h30m"), Some(5_400_000));
        assert_eq!(read("2d"), Some(172_800_000));
        for text in ["500ms", "20s", "1h30m", "2d"] {
            assert_eq!(text.parse::<TimeSpan>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "0s",
            "20",
            "s",
            "-1s",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
