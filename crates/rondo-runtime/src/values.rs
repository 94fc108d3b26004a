//! The values of settings that are neither text nor numbers.

use rondo_types::Effort;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A value that is one of a few words.
pub trait Word: Copy + 'static {
    /// All of them, in the order in which they are shown to people.
    const ALL: &'static [WordMeaning<Self>];

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
pub struct WordMeaning<T> {
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
            const ALL: &'static [WordMeaning<Self>] = &[
                $(WordMeaning { word: $word, value: Self::$variant, help: $help }),*
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
        /// One JSON object, `result`.
        Json = "json",
        /// One JSON object per event; the last one is `result`.
        StreamJson = "stream-json",
    }
    /// Durability of recorded sessions against a power loss.
    DurabilityLevel {
        /// Yes; each step waits until the disk has written it.
        Full = "full",
        /// No; they survive a crash of Rondo only.
        Normal = "normal",
    }
    /// Treatment of a call that needs approval.
    ApprovalMode {
        /// Ask at the terminal; deny the call if there is none.
        Ask = "ask",
        /// Run calls that stay inside the sandbox, and ask about the others.
        Auto = "auto",
        /// Deny the call.
        Deny = "deny",
        /// Save the turn and exit; `rondo answer` continues it.
        Park = "park",
    }
    /// Restrictions on commands.
    SandboxChoice {
        /// No restrictions: commands can access everything that you can.
        Off = "off",
        /// Commands can only read the working directory and system files; no network.
        ReadOnly = "read-only",
        /// Commands can also write in the working directory; no network.
        WorkspaceWrite = "workspace-write",
    }
    /// Search engines.
    WebSearchChoice {
        /// No web search.
        Off = "off",
        /// The model's provider, if it offers web search.
        Model = "model",
        /// The Brave Search API.
        Brave = "brave",
        /// A SearXNG server.
        Searxng = "searxng",
    }
    /// Interfaces at a terminal.
    ScreenChoice {
        /// The full screen, or the line prompt if TERM is `dumb`.
        Auto = "auto",
        /// The full screen.
        Full = "full",
        /// The line prompt (`rondo repl`), which suits screen readers.
        Inline = "inline",
    }
    /// Use of the mouse in the full screen.
    MouseChoice {
        /// The wheel scrolls and dragging selects text.
        On = "on",
        /// The wheel scrolls; the terminal selects text.
        Wheel = "wheel",
        /// The terminal keeps the mouse.
        Off = "off",
    }
    /// Animations in the full screen.
    MotionChoice {
        /// A spinner turns while a turn is running.
        On = "on",
        /// No animations.
        Off = "off",
    }
    /// Colors of the full screen.
    ThemeChoice {
        /// Dark or light, as the terminal reports.
        Auto = "auto",
        /// 24-bit colors for a dark background.
        Dark = "dark",
        /// 24-bit colors for a light background.
        Light = "light",
        /// The 16 colors of the terminal.
        Terminal = "terminal",
    }
    /// Part of the session that stays in the terminal's scrollback.
    PrintChoice {
        /// Everything that was not printed before.
        All = "all",
        /// The last answer.
        Last = "last",
        /// Disables vectors.
        None = "none",
    }
    /// How a person is called who looks at another window.
    NotifyChoice {
        /// Not at all.
        Off = "off",
        /// By the terminal's title.
        Title = "title",
        /// By its bell.
        Bell = "bell",
        /// By a note on the desktop.
        Desktop = "desktop",
    }
    /// Key bindings.
    EditKeys {
        /// Emacs, as in most shells.
        Emacs = "emacs",
        /// Vi.
        Vi = "vi",
    }
}

impl Word for Effort {
    const ALL: &'static [WordMeaning<Self>] = &[
        WordMeaning {
            word: "low",
            value: Self::Low,
            help: "Least reasoning.",
        },
        WordMeaning {
            word: "medium",
            value: Self::Medium,
            help: "Balanced.",
        },
        WordMeaning {
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
    format!("`{text}` is not a length of time such as `500ms`, `20s`, `2m` or `1h30m`")
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
