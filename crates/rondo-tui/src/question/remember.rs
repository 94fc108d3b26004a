//! Answers that let more than one call run: their letters, and the change of the user's rules that some of them ask for.

use rondo_core::shown;
use rondo_runtime::granting::PolicyChange;
use rondo_runtime::sanitize::plain;
use rondo_types::text::shortened;
use rondo_types::{Grant, GrantScope};
use similar::TextDiff;

/// Lines around a change that are shown with it.
const CONTEXT_LINES: usize = 3;
/// The longest grant that a line names, in characters.
const NAME_CHARS_MAX: usize = 60;

/// Grant of an answer beside the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remember {
    /// Without a change of the user's rules: for the rest of the session, or as long as the user's settings keep it.
    InSession(Grant),
    /// For ever, once the change of the user's rules is written.
    ForEver(Grant),
}

/// Returns the letters of the answers that there are, such as `/a/f`, and lines that say what they mean, each with its
/// line break; both empty where nothing can be remembered. `offers` are the question's, the narrowest first.
pub(super) fn choice(offers: &[Grant]) -> (String, String) {
    let (sandbox, offers) = parted(offers);
    let (letters, mut meaning) = match offers.as_slice() {
        [] => ("", String::new()),
        [only] => (
            "/a/f",
            format!("a: allow {} in this session; f: permanently\n", name(only)),
        ),
        [_, .., widest] => (
            "/a/x/f/fx",
            format!(
                "a: allow {} in this session; x: only this exact call; f, fx: permanently\n",
                name(widest)
            ),
        ),
    };
    if sandbox.is_none() {
        return (letters.to_owned(), meaning);
    }
    meaning.push_str("s: run commands in this folder in the sandbox from now on\n");
    (format!("{letters}/s"), meaning)
}

impl Remember {
    /// Returns what a letter or a word lets run beside the call; none where it is no such answer.
    pub fn chosen_by(answer: &str, offers: &[Grant]) -> Option<Self> {
        let (sandbox, offers) = parted(offers);
        if matches!(answer, "s" | "sandbox") {
            return sandbox.cloned().map(Self::InSession);
        }
        let (narrowest, widest) = (offers.first()?, offers.last()?);
        let (narrowest, widest) = ((*narrowest).clone(), (*widest).clone());
        let has_both = offers.len() > 1;
        match answer {
            "a" | "always" => Some(Self::InSession(widest)),
            "x" | "exactly" if has_both => Some(Self::InSession(narrowest)),
            "f" | "forever" => Some(Self::ForEver(widest)),
            "fx" | "forever-exactly" if has_both => Some(Self::ForEver(narrowest)),
            _ => None,
        }
    }
}

/// Returns all that can be remembered, the narrowest first, each with words for a list.
pub fn remembered(offers: &[Grant]) -> Vec<(Remember, String)> {
    let (sandbox, offers) = parted(offers);
    let in_session = offers.iter().map(|it| {
        let words = format!("{} in this session", exactly(it));
        (Remember::InSession((*it).clone()), words)
    });
    let for_ever = offers.iter().map(|it| {
        let words = format!("{} for ever", exactly(it));
        (Remember::ForEver((*it).clone()), words)
    });
    let sandbox = sandbox.map(|it| (Remember::InSession(it.clone()), exactly(it)));
    in_session.chain(sandbox).chain(for_ever).collect()
}

/// Parts the offer of the sandbox, which the user's settings keep, from what a session or the rules remember.
fn parted(offers: &[Grant]) -> (Option<&Grant>, Vec<&Grant>) {
    let (settings, others): (Vec<_>, Vec<_>) = offers.iter().partition(|it| it.scope.is_setting());
    (settings.first().copied(), others)
}

/// Returns a change of the user's rules as a difference.
pub fn shown_change(change: &PolicyChange) -> String {
    let (before, after) = change.texts();
    let name = change.path().display().to_string();
    let diff = TextDiff::from_lines(before, after);
    let mut unified = diff.unified_diff();
    let text = unified
        .context_radius(CONTEXT_LINES)
        .header(&name, &name)
        .to_string();
    plain(&text)
}

/// Returns a grant as a list shows it, where there is room for all of it.
fn exactly(grant: &Grant) -> String {
    shown::line(&grant.to_string())
}

fn name(grant: &Grant) -> String {
    if let GrantScope::Call { .. } = grant.scope {
        return "exactly this call".to_owned();
    }
    let name = shown::line(&grant.to_string());
    shortened(&name, NAME_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_runtime::granting::UserPolicy;

    fn grant(scope: GrantScope) -> Grant {
        Grant {
            scope,
            despite_outside_text: false,
        }
    }

    fn offers() -> [Grant; 2] {
        let tool = || "exec".to_owned();
        let (hash, shown) = ("a".repeat(64), "git add x".to_owned());
        let exactly = GrantScope::Call {
            tool: tool(),
            hash,
            shown,
        };
        let prefix = vec!["git".to_owned(), "add".to_owned()];
        let commands = GrantScope::Commands {
            tool: tool(),
            prefix,
        };
        [grant(exactly), grant(commands)]
    }

    #[test]
    fn letters_stand_for_what_is_offered() {
        let offers = offers();
        let (letters, meaning) = choice(&offers);
        assert_eq!(letters, "/a/x/f/fx");
        assert!(meaning.contains("a: allow exec(git add *) in"), "{meaning}");
        let in_session = |at: usize| Some(Remember::InSession(offers[at].clone()));
        let for_ever = |at: usize| Some(Remember::ForEver(offers[at].clone()));
        for (answer, expected) in [
            ("a", in_session(1)),
            ("always", in_session(1)),
            ("x", in_session(0)),
            ("f", for_ever(1)),
            ("fx", for_ever(0)),
            ("y", None),
            ("", None),
        ] {
            assert_eq!(Remember::chosen_by(answer, &offers), expected, "{answer}");
        }
        assert_eq!(choice(&offers[..1]).0, "/a/f");
        assert_eq!(Remember::chosen_by("x", &offers[..1]), None);
        assert_eq!(
            (choice(&[]).0.as_str(), Remember::chosen_by("a", &[])),
            ("", None)
        );
    }

    #[test]
    fn the_sandbox_of_a_folder_is_offered_beside_what_a_session_remembers() {
        let folder = "/home/me/app".to_owned();
        let sandbox = grant(GrantScope::Sandbox { folder });
        let all = [&offers()[..], std::slice::from_ref(&sandbox)].concat();
        let (letters, meaning) = choice(&all);
        assert_eq!(letters, "/a/x/f/fx/s");
        assert!(
            meaning.ends_with("\ns: run commands in this folder in the sandbox from now on\n"),
            "{meaning}"
        );
        let chosen_sandbox = Some(Remember::InSession(sandbox.clone()));
        assert_eq!(Remember::chosen_by("s", &all), chosen_sandbox);
        assert_eq!(
            Remember::chosen_by("a", &all),
            Some(Remember::InSession(offers()[1].clone()))
        );
        assert_eq!(choice(std::slice::from_ref(&sandbox)).0, "/s");
        assert_eq!(Remember::chosen_by("a", &[sandbox]), None);
        assert_eq!(Remember::chosen_by("s", &offers()), None);
    }

    #[test]
    fn a_change_is_shown_as_a_difference_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let env = rondo_runtime::env::Env::of(&[("RONDO_HOME", home)]);
        let paths = rondo_runtime::paths::Paths::find(&env).unwrap();
        std::fs::write(paths.user_policy(), "lift = []\n").unwrap();
        let change = UserPolicy::of(&paths).with(&offers()[1]).unwrap();
        let shown = shown_change(&change);
        for line in [
            " lift = []\n",
            "+[[grant]]\n",
            "+command = [\"git\", \"add\"]\n",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        assert_eq!(
            std::fs::read_to_string(change.path()).unwrap(),
            "lift = []\n"
        );
        change.save().unwrap();
        assert!(
            std::fs::read_to_string(change.path())
                .unwrap()
                .contains("[[grant]]")
        );
    }
}
