//! State that one command leaves for the next one.

use super::{Kept, SHELLS};
use std::ffi::OsStr;

#[tokio::test]
async fn directory_variables_aliases_functions_and_options_last() {
    for name in SHELLS {
        let kept = Kept::new(name);
        std::fs::create_dir(kept.path().join("sub dir")).unwrap();
        let moved = kept.run("cd 'sub dir'").await;
        assert_eq!(
            (moved.output.as_str(), moved.end.exit_code),
            ("", 0),
            "{name}"
        );
        assert_eq!(moved.end.directory, kept.path().join("sub dir"), "{name}");
        kept.run("export A='1 \"2\" $3\n4'; B=5").await;
        kept.run("alias hi='echo hello'").await;
        kept.run("f() { echo \"f:$1\"; }").await;
        let found = kept.output("echo \"$A|$B\"; hi; f x; pwd").await;
        let here = kept.path().join("sub dir");
        let expected = format!("1 \"2\" $3\n4|5\nhello\nf:x\n{}\n", here.display());
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn exported_variables_are_reported_and_others_are_not() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let line =
            "export A='1 \"2\" `3` $4 \\5\n\t\u{e4}' EMPTY=; LOCAL=6; export ESC=$'\\e[1m\\x01'";
        let end = kept.run(line).await.end;
        let environment = end.environment.unwrap();
        let value = |name: &str| environment.get(name).map(ToOwned::to_owned);
        assert_eq!(
            value("A"),
            Some("1 \"2\" `3` $4 \\5\n\t\u{e4}".into()),
            "{name}"
        );
        assert_eq!(value("EMPTY"), Some("".into()), "{name}");
        assert_eq!(value("ESC"), Some("\x1b[1m\x01".into()), "{name}");
        assert_eq!(value("LOCAL"), None, "{name}");
        assert_eq!(value("HOME"), Some(kept.path().into()), "{name}");
        assert_eq!(
            kept.workdir.environment().as_ref(),
            Some(&environment),
            "{name}"
        );
        let own = |(name, _): &(&OsStr, &OsStr)| name.to_string_lossy().starts_with("__rondo");
        assert_eq!(environment.iter().find(own), None, "{name}");
        assert!(!format!("{environment:?}").contains("PATH"), "{name}");
    }
}

#[tokio::test]
async fn an_environment_past_its_bound_is_not_reported() {
    let kept = Kept::new("bash");
    let line = "printf -v BIG '%03000000d' 0; export BIG; cd /";
    let end = kept.run(line).await.end;
    assert_eq!(end.directory, std::path::Path::new("/"));
    assert_eq!(kept.output("echo ${#BIG}").await, "3000000\n");
    let known = kept.workdir.environment().unwrap();
    assert!(known.get("BIG").is_none());
}

#[tokio::test]
async fn pipes_lists_and_exit_codes_are_the_shells_own() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let piped = kept.run("printf 'b\\na\\n' | sort | tr a-z A-Z").await;
        assert_eq!((piped.output.as_str(), piped.end.exit_code), ("A\nB\n", 0));
        for (line, code) in [
            ("false", 1),
            ("(exit 7)", 7),
            ("true && false || (exit 3)", 3),
            ("no_such_program_here", 127),
            ("sh -c 'kill -TERM $$'", 143),
        ] {
            assert_eq!(kept.run(line).await.end.exit_code, code, "{name}: {line}");
        }
        assert_eq!(kept.output("(exit 5)").await, "");
        assert_eq!(kept.output("echo $?").await, "5\n", "{name}");
    }
}

#[tokio::test]
async fn a_background_job_does_not_hold_the_command_and_is_there_for_the_next() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let begun = kept.run("sleep 1000 & echo begun").await;
        assert!(begun.output.contains("begun\n"), "{name}: {}", begun.output);
        let jobs = kept.output("jobs").await;
        assert!(jobs.contains("sleep 1000"), "{name}: {jobs}");
        kept.run("kill %sleep; wait").await;
        assert_eq!(kept.output("jobs").await, "", "{name}");
    }
}

#[tokio::test]
async fn history_has_the_lines_and_nothing_of_ours() {
    let kept = Kept::with("bash", "HISTFILE=~/hist\nset -o history\n", |_| ());
    kept.run("echo one").await;
    kept.run("echo two").await;
    let history = kept.output("history").await;
    assert!(
        history.contains("echo one") && history.contains("echo two"),
        "{history}"
    );
    assert!(!history.contains("__rondo"), "{history}");
    kept.run("echo three").await;
    assert_eq!(kept.output("!!").await, "echo three\nthree\n");
    let kept = Kept::new("zsh");
    kept.run("echo one").await;
    kept.run("echo two").await;
    let history = kept.output("fc -l 1").await;
    assert!(
        history.contains("echo one") && history.contains("echo two"),
        "{history}"
    );
    assert!(!history.contains("__rondo"), "{history}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_shell_has_the_users_keys_and_its_supervisor_does_not_show_them() {
    for name in SHELLS {
        let kept = Kept::with(name, "", |settings| {
            let key = ("DEPLOY_TOKEN".into(), Some("d-123456".into()));
            settings.environment.push(key);
        });
        let line = "echo $DEPLOY_TOKEN; cat /proc/$PPID/environ 2> /dev/null | tr '\\0' '\\n' | grep ^DEPLOY";
        let found = kept.output(line).await;
        // One that a keeper forked has no environment of its own.
        let found = found.replace("DEPLOY_TOKEN=\n", "");
        assert_eq!(found, "d-123456\n", "{name}");
    }
}
