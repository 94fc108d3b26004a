//! Answers that let more than one call run: their letters, and the change of the user's rules that some of them ask for.

use crate::output::Output;
use rondo_core::shown;
use rondo_runtime::error::Result;
use rondo_runtime::granting::{PolicyChange, UserPolicy};
use rondo_runtime::sanitize::plain;
use rondo_types::text::shortened;
use rondo_types::{Grant, GrantScope};
use similar::TextDiff;

/// Lines around a change that are shown with it.
const CONTEXT_LINES: usize = 3;
/// The longest grant that a line names, in characters.
const NAME_CHARS_MAX: usize = 60;

/// What an answer lets run beside the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remember {
    /// Without a change of the user's rules: for the rest of the session, or as long as the user's settings keep it.
    InSession(Grant),
    /// For ever, once the change of the user's rules is written.
    ForEver(Grant),
}

/// Returns the letters of the answers that there are, such as `/a/f`, and lines that say what they mean, each with its
/// line break; both empty where nothing can be remembered. `offers` are the question's, the narrowest first.
pub(crate) fn choice(offers: &[Grant]) -> (String, String) {
    let (sandbox, offers) = parted(offers);
    let (letters, mut meaning) = match offers.as_slice() {
        [] => ("", String::new()),
        [only] => (
            "/a/f",
            format!("a: allow {} in this session; f: for ever\n", name(only)),
        ),
        [_, .., widest] => (
            "/a/x/f/fx",
            format!(
                "a: allow {} in this session; x: only exactly this call; f, fx: for ever\n",
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

/// Returns what an answer lets run beside the call; none where it is no such answer.
pub(crate) fn chosen(answer: &str, offers: &[Grant]) -> Option<Remember> {
    let (sandbox, offers) = parted(offers);
    if matches!(answer, "s" | "sandbox") {
        return sandbox.cloned().map(Remember::InSession);
    }
    let (narrowest, widest) = (offers.first()?, offers.last()?);
    let (narrowest, widest) = ((*narrowest).clone(), (*widest).clone());
    let has_both = offers.len() > 1;
    match answer {
        "a" | "always" => Some(Remember::InSession(widest)),
        "x" | "exactly" if has_both => Some(Remember::InSession(narrowest)),
        "f" | "forever" => Some(Remember::ForEver(widest)),
        "fx" | "forever-exactly" if has_both => Some(Remember::ForEver(narrowest)),
        _ => None,
    }
}

/// Parts the offer of the sandbox, which the user's settings keep, from what a session or the rules remember.
fn parted(offers: &[Grant]) -> (Option<&Grant>, Vec<&Grant>) {
    let (settings, others): (Vec<_>, Vec<_>) = offers.iter().partition(|it| it.scope.is_setting());
    (settings.first().copied(), others)
}

/// Returns the change that lets something run for ever, and shows it.
///
/// # Errors
/// When the user's file of rules cannot be read or changed.
pub(crate) fn shown_change(policy: &UserPolicy, grant: &Grant) -> Result<(PolicyChange, String)> {
    let change = policy.with(grant)?;
    let (before, after) = change.texts();
    let name = change.path().display().to_string();
    let diff = TextDiff::from_lines(before, after);
    let mut unified = diff.unified_diff();
    let text = unified
        .context_radius(CONTEXT_LINES)
        .header(&name, &name)
        .to_string();
    Ok((change, plain(&text)))
}

/// Writes a change, and says so.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(change: &PolicyChange, output: &Output) -> Result<()> {
    change.save()?;
    output.note(&format!("written to `{}`", change.path().display()));
    Ok(())
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
            assert_eq!(chosen(answer, &offers), expected, "{answer}");
        }
        assert_eq!(choice(&offers[..1]).0, "/a/f");
        assert_eq!(chosen("x", &offers[..1]), None);
        assert_eq!((choice(&[]).0.as_str(), chosen("a", &[])), ("", None));
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
        assert_eq!(chosen("s", &all), chosen_sandbox);
        assert_eq!(
            chosen("a", &all),
            Some(Remember::InSession(offers()[1].clone()))
        );
        assert_eq!(choice(std::slice::from_ref(&sandbox)).0, "/s");
        assert_eq!(chosen("a", &[sandbox]), None);
        assert_eq!(chosen("s", &offers()), None);
    }

    #[test]
    fn a_change_is_shown_as_a_difference_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let env = rondo_runtime::env::Env::of(&[("RONDO_HOME", home)]);
        let paths = rondo_runtime::paths::Paths::find(&env).unwrap();
        std::fs::write(paths.user_policy(), "lift = []\n").unwrap();
        let (change, shown) = shown_change(&UserPolicy::of(&paths), &offers()[1]).unwrap();
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
