//! Makes commands: from a grammar, and from others.

use super::runner::PORT;
use super::vocabulary::{DELIMITERS, EFFECTS, ENDS, NAMES, OPTIONS, PATHS, PIECES};
use fastrand::Rng;

/// The longest command that is made, in bytes: longer ones are asked about.
const COMMAND_BYTES_MAX: usize = 600;
/// How deep the grammar goes.
const DEPTH_MAX: usize = 4;
/// How many commands are kept for others to be made of them.
const KEPT_MAX: usize = 4000;
/// The most changes to one command.
const CHANGES_MAX: usize = 5;

/// Makes one command after the other.
pub(super) struct Generator {
    rng: Rng,
    kept: Vec<String>,
}

impl Generator {
    pub(super) fn new(seed: u64, seeds: Vec<String>) -> Self {
        let rng = Rng::with_seed(seed);
        Self { rng, kept: seeds }
    }

    /// Keeps a command for others to be made of it.
    pub(super) fn keep(&mut self, command: &str) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(command.to_owned());
        } else if let Some(place) = {
            let at = self.rng.usize(..KEPT_MAX);
            self.kept.get_mut(at)
        } {
            command.clone_into(place);
        }
    }

    pub(super) fn next(&mut self) -> String {
        let mut command = match self.rng.u8(..10) {
            0 | 1 => self.list(0),
            2 => self.here_document(0),
            3 => self.spliced(),
            4 => self.planted(),
            _ => self.changed(),
        };
        let mut end = COMMAND_BYTES_MAX.min(command.len());
        while !command.is_char_boundary(end) {
            end -= 1;
        }
        command.truncate(end);
        command
    }

    fn pick(&mut self, from: &[&str]) -> String {
        let at = self.rng.usize(..from.len());
        from.get(at).copied().unwrap_or_default().to_owned()
    }

    fn one_kept(&mut self) -> String {
        let at = self.rng.usize(..self.kept.len().max(1));
        self.kept.get(at).cloned().unwrap_or_default()
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = self.command(depth);
        for _ in 0..self.rng.usize(..3) {
            text += &self.pick(&["; ", " && ", " || ", " | ", "\n", " |& ", " & ", ";", "|"]);
            text += &self.command(depth);
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth >= DEPTH_MAX {
            return self.simple(depth);
        }
        let depth = depth + 1;
        match self.rng.u8(..24) {
            0 => format!("( {} )", self.list(depth)),
            1 => format!("{{ {}; }}", self.list(depth)),
            2 => format!(
                "if {}; then {}; else {}; fi",
                self.list(depth),
                self.list(depth),
                self.simple(depth)
            ),
            3 => format!(
                "while {}; do {}; break; done",
                self.simple(depth),
                self.list(depth)
            ),
            4 => format!(
                "for x in {}; do {}; done",
                self.word(depth),
                self.list(depth)
            ),
            5 => format!(
                "case {} in {}) {};; *) {};; esac",
                self.word(depth),
                self.word(depth),
                self.list(depth),
                self.simple(depth)
            ),
            6 => format!("! {}", self.command(depth)),
            7 => format!(
                "[[ {} {} {} ]]",
                self.word(depth),
                self.pick(&["==", "=~", "<", "-nt", "-eq", "!="]),
                self.word(depth)
            ),
            8 => format!(
                "[[ {} {} ]]",
                self.pick(&["-f", "-v", "-n", "-R", "-o"]),
                self.word(depth)
            ),
            9 => format!("f() {{ {}; }}; f", self.list(depth)),
            10 => format!("(( {} ))", self.word(depth)),
            11 => self.here_document(depth),
            12 => self.pick(EFFECTS),
            _ => self.simple(depth),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.rng.u8(..20) == 0 {
            text += &self.pick(&[
                "LC_ALL=C ",
                "x=1 ",
                "PATH=. ",
                "LANG=$(touch made) ",
                "A[0]=x ",
            ]);
        }
        text += &self.pick(NAMES);
        for _ in 0..self.rng.usize(..4) {
            text.push(' ');
            text += &match self.rng.u8(..3) {
                0 => self.pick(OPTIONS),
                _ => self.word(depth),
            };
        }
        if self.rng.u8(..6) == 0 {
            text += &self.pick(&[
                " >/dev/null",
                " 2>&1",
                " >made",
                " <README.md",
                " <../key",
                " 2>made",
                " <<<x",
                " &>made",
                " 3<>made",
                " >&made",
            ]);
            if self.rng.bool() {
                text += " 2>/dev/null";
            }
        }
        text
    }

    fn word(&mut self, depth: usize) -> String {
        let deeper = depth < DEPTH_MAX;
        match self.rng.u8(..22) {
            0 if deeper => format!("$({})", self.list(depth + 1)),
            1 if deeper => format!("`{}`", self.list(depth + 1)),
            2 if deeper => format!("\"$({})\"", self.list(depth + 1)),
            3 if deeper => format!("<({})", self.list(depth + 1)),
            4 if deeper => format!("\"{}\"", self.word(depth + 1)),
            5 => format!("'{}'", self.pick(EFFECTS)),
            6 => format!("\"{}\"", self.pick(EFFECTS)),
            7 => format!("$'{}'", self.pick(PIECES)),
            8 if deeper => format!("${{x:-{}}}", self.word(depth + 1)),
            9 if deeper => format!("$(( {} ))", self.word(depth + 1)),
            10 => self.pick(PATHS) + &self.pick(PATHS),
            11 => self.pick(PIECES),
            12 => format!("{{{},{}}}", self.pick(PATHS), self.pick(PATHS)),
            13 => self.pick(&[
                "$x",
                "$HOME",
                "$PWD",
                "$?",
                "$1",
                "\"$@\"",
                "${PWD}",
                "$WORLD_SECRET",
                "$RANDOM",
                "$((1+2))",
            ]),
            _ => self.pick(PATHS),
        }
    }

    /// Text to the parser may be a command to bash.
    fn here_document(&mut self, depth: usize) -> String {
        let dash = self.pick(&["<<", "<<-", "<< ", "<<- ", "0<<"]);
        let delimiter = self.pick(DELIMITERS);
        let after = self.pick(&[
            "",
            "",
            "",
            " | cat",
            "; ls",
            " >/dev/null",
            " <<F",
            ")",
            " && ls",
        ]);
        let head = match self.rng.u8(..6) {
            0 => format!("$(cat {dash}{delimiter}{after}"),
            1 => format!("echo \"$(cat {dash}{delimiter}{after}"),
            2 => format!("(cat {dash}{delimiter}{after}"),
            _ => format!(
                "{} {dash}{delimiter}{after}",
                self.pick(&["cat", "wc -l", "sort", "grep x", "tr a b"])
            ),
        };
        let mut text = head;
        for _ in 0..=self.rng.usize(..4) {
            text.push('\n');
            text += &match self.rng.u8(..6) {
                0 | 1 => self.pick(ENDS),
                2 => self.pick(PIECES),
                3 if depth < DEPTH_MAX => self.command(depth + 1),
                _ => self.pick(EFFECTS),
            };
        }
        text + "\n" + &self.pick(ENDS) + &self.pick(&["\n", "", ")", "\n)", "\n)\"", "\n`"])
    }

    /// A known command with an effect somewhere in it.
    fn planted(&mut self) -> String {
        let mut text = self.one_kept();
        let effect = self.pick(EFFECTS);
        let effect = match self.rng.u8(..8) {
            0 => format!("$({effect})"),
            1 => format!("`{effect}`"),
            2 => format!(";{effect};"),
            3 => format!("\n{effect}\n"),
            4 => format!("|{effect}"),
            5 => format!("<({effect})"),
            6 => format!("${{x:=$({effect})}}"),
            _ => format!("$(({effect}))"),
        };
        let at = self.place(&text);
        text.insert_str(at, &effect);
        if self.rng.bool() {
            self.change(&mut text);
        }
        text
    }

    fn spliced(&mut self) -> String {
        let (mut text, other) = (self.one_kept(), self.one_kept());
        let (at, from) = (self.place(&text), self.place(&other));
        text.truncate(at);
        text + other.get(from..).unwrap_or_default()
    }

    fn changed(&mut self) -> String {
        let mut text = self.one_kept();
        for _ in 0..=self.rng.usize(..CHANGES_MAX) {
            self.change(&mut text);
        }
        text
    }

    fn change(&mut self, text: &mut String) {
        let at = self.place(text);
        let end = self.place(text);
        let (from, to) = (at.min(end), at.max(end));
        match self.rng.u8(..9) {
            0 => text.replace_range(from..to, ""),
            1 => {
                let part = text.get(from..to).unwrap_or_default().to_owned();
                text.insert_str(at, &part);
            }
            2 => text.insert_str(at, &self.pick(PIECES)),
            3 => text.insert_str(at, &self.pick(EFFECTS)),
            4 => text.insert_str(at, &self.pick(PATHS)),
            5 => text.insert_str(at, &format!(" {} ", self.pick(OPTIONS))),
            6 => {
                let next = text.get(at..).and_then(|rest| rest.chars().next());
                let width = next.map_or(0, char::len_utf8);
                let piece = self.pick(PIECES);
                text.replace_range(at..at + width, &piece);
            }
            7 => {
                let (opening, closing) = match self.rng.u8(..7) {
                    0 => ("$(", ")"),
                    1 => ("`", "`"),
                    2 => ("\"", "\""),
                    3 => ("'", "'"),
                    4 => ("( ", " )"),
                    5 => ("{ ", "; }"),
                    _ => ("$'", "'"),
                };
                text.insert_str(to, closing);
                text.insert_str(from, opening);
            }
            _ => {
                let word = self.word(0);
                text.insert_str(at, &format!(" {word}"));
            }
        }
    }

    /// A place between two characters.
    fn place(&mut self, text: &str) -> usize {
        let mut at = self.rng.usize(..=text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// Says how the loopback is reached, so that commands find the listener.
pub(super) fn connections() -> [String; 3] {
    [
        format!("echo x >/dev/tcp/127.0.0.1/{PORT}"),
        format!("cat </dev/tcp/localhost/{PORT}"),
        format!("echo x >/dev/udp/127.0.0.1/{PORT}"),
    ]
}
