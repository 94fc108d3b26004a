//! Uses of our functions in a script. It is read word by word, without a tree: names that are declared twice are left
//! alone, so correct code is never reported.

use super::ScriptMistake;
use super::lexer::{Kind, Token};
use crate::names::{AGENT, CONVERSATION, GLOBALS, LIBRARIES, MEMBERS, OPTIONS, RONDO};
use std::collections::{BTreeMap, BTreeSet};

/// How alike two names are at least, from 0 to 1, if one may be meant by the other.
const LIKENESS_MIN: f64 = 0.75;

/// Returns the mistakes of a script.
pub(super) fn mistakes(tokens: &[Token<'_>]) -> Vec<ScriptMistake> {
    let mut reader = Reader {
        tokens,
        declared: declared(tokens),
        aliases: BTreeMap::new(),
        mistakes: Vec::new(),
    };
    reader.find_aliases();
    for at in 0..tokens.len() {
        reader.look(at);
    }
    reader.mistakes
}

/// Meaning of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameMeaning {
    /// Something of ours, such as `rondo.agent`.
    Ours(String),
    /// Result of `rondo.agent`.
    Agent,
    /// Result of `|`.
    Conversation,
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    /// Names that the script gives something, and how often.
    declared: BTreeMap<&'a str, u32>,
    aliases: BTreeMap<&'a str, NameMeaning>,
    mistakes: Vec<ScriptMistake>,
}

const KEYWORDS: [&str; 22] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
    "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

fn is_name(token: &Token<'_>) -> bool {
    token.kind == Kind::Name && !KEYWORDS.contains(&token.text)
}

/// Returns the names that are given something anywhere: variables, parameters, functions.
fn declared<'a>(tokens: &[Token<'a>]) -> BTreeMap<&'a str, u32> {
    let mut declared = BTreeMap::new();
    let text = |at: usize| tokens.get(at).map_or("", |it| it.text);
    let mut note = |name: &'a str| *declared.entry(name).or_insert(0) += 1;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "local" | "for" if token.kind == Kind::Name => {
                names_from(tokens, at + 1).for_each(&mut note);
            }
            "function" if token.kind == Kind::Name => {
                if tokens.get(at + 1).is_some_and(is_name) && text(at + 2) == "(" {
                    note(tokens.get(at + 1).map_or("", |it| it.text));
                }
                let open = (at..tokens.len()).find(|it| text(*it) == "(");
                if let Some(open) = open {
                    names_from(tokens, open + 1).for_each(&mut note);
                }
            }
            _ if is_name(token) && text(at + 1) == "=" => {
                let before = at.checked_sub(1).map_or("", text);
                // A local one was counted, and these are fields.
                if !matches!(before, "local" | "." | "{" | "," | ";") {
                    note(token.text);
                }
            }
            _ => {}
        }
    }
    declared
}

/// Returns the names of a list that begins here.
fn names_from<'a, 't>(
    tokens: &'t [Token<'a>],
    from: usize,
) -> impl Iterator<Item = &'a str> + use<'a, 't> {
    let list = tokens.get(from..).unwrap_or_default().iter();
    let list = list.take_while(|it| is_name(it) || it.text == ",");
    list.filter(|it| is_name(it)).map(|it| it.text)
}

impl<'a> Reader<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |it| it.text)
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(is_name)
    }

    fn tell(&mut self, at: usize, message: String) {
        let line = self.tokens.get(at).map_or(0, |it| it.line);
        self.mistakes.push(ScriptMistake { line, message });
    }

    /// Finds variables that stand for something of ours, if they are given nothing else.
    fn find_aliases(&mut self) {
        for at in 0..self.tokens.len() {
            if self.text(at) != "local" || !self.is_name(at + 1) || self.text(at + 2) != "=" {
                continue;
            }
            let name = self.text(at + 1);
            if self.declared.get(name) != Some(&1) {
                continue;
            }
            if let Some(meaning) = self.meaning(at + 3) {
                self.aliases.insert(name, meaning);
            }
        }
    }

    /// Returns the meaning of the expression that begins here.
    fn meaning(&self, from: usize) -> Option<NameMeaning> {
        let (path, end) = self.path(from);
        let is_call = matches!(self.text(end), "(" | "{")
            || self
                .tokens
                .get(end)
                .is_some_and(|it| it.kind == Kind::Literal);
        let statement = self.statement(from);
        let pipes = statement.iter().any(|at| self.text(*at) == "|");
        if pipes {
            let knows_agent = statement.iter().any(|at| {
                let meaning = self.aliases.get(self.text(*at));
                matches!(
                    meaning,
                    Some(NameMeaning::Agent | NameMeaning::Conversation)
                )
            });
            let last = statement.last().map_or("", |at| self.text(*at));
            // Of `("x" | agent).text` it is a field.
            let is_plain = !statement.iter().any(|at| self.text(*at) == ".") && last != "}";
            return (knows_agent && is_plain).then_some(NameMeaning::Conversation);
        }
        match (path.as_deref(), is_call) {
            (Some("rondo.agent"), true) => Some(NameMeaning::Agent),
            (Some(_), true) | (None, _) => None,
            (Some(path), false) => Some(NameMeaning::Ours(path.to_owned())),
        }
    }

    /// Returns the places of the words of an expression, without those in brackets below a call.
    fn statement(&self, from: usize) -> Vec<usize> {
        let line = |at: usize| self.tokens.get(at).map_or(0, |it| it.line);
        let mut words = Vec::new();
        let mut at = from;
        while at < self.tokens.len() {
            let ends = matches!(
                self.text(at),
                "local" | "end" | "return" | "if" | "for" | "while" | "print" | ";" | ","
            );
            let goes_on = at == from
                || line(at) == line(at - 1)
                || matches!(self.text(at), "|")
                || matches!(self.text(at - 1), "|");
            if ends || !goes_on {
                break;
            }
            words.push(at);
            at = match self.text(at) {
                "{" => self.closing(at) + 1,
                _ => at + 1,
            };
        }
        words
    }

    /// Returns a name of ours at this place, such as `rondo.files.read`, and where it ends.
    fn path(&self, at: usize) -> (Option<String>, usize) {
        if !self.is_name(at) {
            return (None, at);
        }
        let name = self.text(at);
        let mut path = match self.aliases.get(name) {
            Some(NameMeaning::Ours(path)) => path.clone(),
            None if name == "rondo" && !self.declared.contains_key(name) => name.to_owned(),
            _ => return (None, at + 1),
        };
        let mut end = at + 1;
        while self.text(end) == "." && self.is_name(end + 1) {
            path.push('.');
            path.push_str(self.text(end + 1));
            end += 2;
        }
        (Some(path), end)
    }

    fn look(&mut self, at: usize) {
        let before = at.checked_sub(1).map_or("", |it| self.text(it));
        if matches!(before, "." | ":" | "function" | "goto") || !self.is_name(at) {
            return;
        }
        if self.text(at + 1) == "=" && matches!(before, "{" | "," | ";") {
            return;
        }
        if let (Some(path), end) = self.path(at) {
            self.look_at_path(&path, end);
            return;
        }
        let name = self.text(at);
        let is_field = matches!(self.text(at + 1), "." | ":") && self.is_name(at + 2);
        match self.aliases.get(name) {
            Some(NameMeaning::Agent) if is_field => self.look_at_field(at + 2, "an agent", AGENT),
            Some(NameMeaning::Conversation) if is_field => {
                self.look_at_field(at + 2, "a conversation", CONVERSATION);
            }
            Some(_) => {}
            None if self.declared.contains_key(name) => {}
            None => self.look_at_global(at, name, is_field),
        }
    }

    fn look_at_field(&mut self, at: usize, of: &str, known: &[&str]) {
        let name = self.text(at);
        if !known.contains(&name) {
            let meant = meant(name, known.iter().copied(), "");
            self.tell(at, format!("{of} has no field `{name}`{meant}"));
        }
    }

    fn look_at_global(&mut self, at: usize, name: &str, is_field: bool) {
        if let Some(library) = LIBRARIES.iter().find(|it| it.of == name) {
            let member = self.text(at + 2);
            if is_field && !library.names.contains(&member) {
                self.tell(at, format!("there is no `{name}.{member}` in scripts"));
            }
            return;
        }
        let next = self.tokens.get(at + 1);
        let is_call = next.is_some_and(|it| {
            it.text == "("
                || it.text == "{"
                || it.kind == Kind::Literal && !it.text.starts_with(|c: char| c.is_ascii_digit())
        });
        if is_call && !GLOBALS.contains(&name) {
            let known: BTreeSet<&str> = GLOBALS
                .iter()
                .copied()
                .chain(self.declared.keys().copied())
                .collect();
            let meant = meant(name, known.into_iter(), "");
            self.tell(at, format!("there is no function `{name}`{meant}"));
        }
    }

    fn look_at_path(&mut self, path: &str, end: usize) {
        let at = end - 1;
        let mut parts = path.split('.');
        let (_, member, below) = (parts.next(), parts.next(), parts.next());
        if let Some(member) = member
            && !RONDO.contains(&member)
        {
            let meant = meant(member, RONDO.iter().copied(), "rondo.");
            self.tell(at, format!("there is no `rondo.{member}`{meant}"));
            return;
        }
        let table = member.map(|it| format!("rondo.{it}"));
        let members = MEMBERS.iter().find(|it| Some(it.of) == table.as_deref());
        if let (Some(members), Some(below)) = (members, below)
            && !members.names.contains(&below)
        {
            let dotted = format!("{}.", members.of);
            let meant = meant(below, members.names.iter().copied(), &dotted);
            self.tell(at, format!("there is no `{dotted}{below}`{meant}"));
            return;
        }
        let Some(options) = OPTIONS.iter().find(|it| it.of == path) else {
            return;
        };
        if let Some(table) = self.options_table(path, end) {
            self.look_at_options(options.of, options.names, table);
        }
    }

    /// Returns the beginning of a call's table of options: its only argument, or the one behind the first.
    fn options_table(&self, path: &str, end: usize) -> Option<usize> {
        let is_second = matches!(path, "rondo.exec" | "rondo.ask" | "rondo.parallel");
        match (self.text(end), is_second) {
            ("{", false) => Some(end),
            ("(", false) if self.text(end + 1) == "{" => Some(end + 1),
            ("(", true) => {
                let close = self.closing(end);
                let mut at = end + 1;
                while at < close {
                    match self.text(at) {
                        "," if self.text(at + 1) == "{" => return Some(at + 1),
                        "(" | "{" | "[" => at = self.closing(at) + 1,
                        _ => at += 1,
                    }
                }
                None
            }
            _ => None,
        }
    }

    fn look_at_options(&mut self, of: &str, known: &[&str], open: usize) {
        let close = self.closing(open);
        let mut at = open + 1;
        while at < close {
            let is_key = matches!(self.text(at - 1), "{" | "," | ";")
                && self.is_name(at)
                && self.text(at + 1) == "=";
            if is_key {
                let name = self.text(at);
                if !known.contains(&name) {
                    let meant = meant(name, known.iter().copied(), "");
                    self.tell(at, format!("`{of}` has no option `{name}`{meant}"));
                }
                let below = OPTIONS.iter().find(|it| it.of == name);
                if let (Some(below), "{") = (below, self.text(at + 2)) {
                    self.look_at_options(below.of, below.names, at + 2);
                }
            }
            at = match self.text(at) {
                "(" | "{" | "[" => self.closing(at) + 1,
                "function" => self.end_of_block(at) + 1,
                _ => at + 1,
            };
        }
    }

    /// Returns the closing bracket of one that is opened here; the end if there is none.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for at in open..self.tokens.len() {
            match self.text(at) {
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at;
                    }
                }
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Returns the end of the function that begins here.
    fn end_of_block(&self, begin: usize) -> usize {
        let mut depth = 0_usize;
        for at in begin..self.tokens.len() {
            match self.text(at) {
                // `for` and `while` have a `do`.
                "function" | "do" | "if" | "repeat" => depth += 1,
                "end" | "until" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at;
                    }
                }
                _ => {}
            }
        }
        self.tokens.len()
    }
}

/// Returns a question for the name that may be meant.
fn meant<'n>(name: &str, known: impl Iterator<Item = &'n str>, prefix: &str) -> String {
    let likest = known
        .map(|it| (strsim::jaro_winkler(name, it), it))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match likest {
        Some((likeness, it)) if likeness >= LIKENESS_MIN => {
            format!("; did you mean `{prefix}{it}`?")
        }
        _ => String::new(),
    }
}
