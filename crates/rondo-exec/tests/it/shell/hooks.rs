//! The user's own hooks keep working.

use super::{Kept, SHELLS, rest, until};

#[tokio::test]
async fn the_users_own_prompt_command_runs_and_sees_the_exit_code() {
    for rc in [
        "PROMPT_COMMAND='echo \"p:$?\" >> ~/log'\n",
        "PROMPT_COMMAND=('echo \"p:$?\" >> ~/log' 'true')\n",
        "PROMPT_COMMAND='echo \"p:$?\" >> ~/log; '\n",
        "shopt -s expand_aliases; alias eval='echo no' printf='echo no' read='echo no'\n\
         PROMPT_COMMAND='echo \"p:$?\" >> ~/log'\n",
    ] {
        let kept = Kept::with("bash", rc, |_| ());
        kept.run("(exit 4)").await;
        kept.run("true").await;
        let log = std::fs::read_to_string(kept.path().join("log")).unwrap();
        assert_eq!(log, "p:0\np:4\np:0\n", "{rc}");
    }
}

#[tokio::test]
async fn prompts_that_are_set_later_are_taken_along() {
    let kept = Kept::new("bash");
    kept.run("PROMPT_COMMAND='echo a >> ~/log'; PS1='mine> '")
        .await;
    kept.run("PROMPT_COMMAND+='; echo b >> ~/log'").await;
    kept.run("unset PROMPT_COMMAND; echo \"$PS1\"").await;
    assert_eq!(kept.output("echo \"$PS1\"").await, "mine> \n");
    let log = std::fs::read_to_string(kept.path().join("log")).unwrap();
    assert_eq!(log, "a\na\nb\n");
}

#[tokio::test]
async fn the_users_prompt_is_kept_and_not_shown() {
    for name in SHELLS {
        let kept = Kept::with(name, "PS1='mine> '\n", |_| ());
        assert_eq!(kept.output("echo \"$PS1\"").await, "mine> \n", "{name}");
    }
}

#[tokio::test]
async fn zsh_hooks_of_the_user_run_too() {
    let rc = "precmd() { echo \"p:$?\" >> ~/log }\n\
              autoload -Uz add-zsh-hook; q() { PS1='later> ' }; add-zsh-hook precmd q\n\
              setopt ksh_arrays no_unset\n";
    let kept = Kept::with("zsh", rc, |_| ());
    kept.run("(exit 4)").await;
    assert_eq!(kept.output("echo $PS1").await, "later> \n");
    let log = std::fs::read_to_string(kept.path().join("log")).unwrap();
    assert_eq!(log, "p:0\np:4\np:0\n");
    let later = kept.run("precmd_functions=(q)").await;
    assert_eq!(later.end.exit_code, 0);
    assert_eq!(kept.output("echo next").await, "next\n");
}

#[tokio::test]
async fn what_runs_before_a_command_of_zsh_sees_the_users_line_and_can_be_taken_back() {
    let rc = "preexec() { echo \"p:$1\" >> ~/log }\n\
              autoload -Uz add-zsh-hook; q() { echo \"q:$2\" >> ~/log; false }; add-zsh-hook preexec q\n";
    let kept = Kept::with("zsh", rc, |_| ());
    kept.run("(exit 4)").await;
    assert_eq!(
        kept.output("echo $?; print $preexec_functions").await,
        "4\nq\n"
    );
    kept.run("add-zsh-hook -d preexec q; preexec() { echo \"n:$3\" >> ~/log }")
        .await;
    kept.run("true").await;
    let log = std::fs::read_to_string(kept.path().join("log")).unwrap();
    let last = "add-zsh-hook -d preexec q; preexec() { echo \"n:$3\" >> ~/log }";
    let second = "echo $?; print $preexec_functions";
    let expected =
        format!("p:(exit 4)\nq:(exit 4)\np:{second}\nq:{second}\np:{last}\nq:{last}\nn:true\n");
    assert_eq!(log, expected);
}

#[tokio::test]
async fn zsh_reads_the_start_files_of_its_own_directory() {
    let kept = Kept::with("zsh", "A=wrong\n", |settings| {
        let home = settings.workdir.directory();
        let own = home.join("own dir");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join(".zshenv"), "E=env\n").unwrap();
        std::fs::write(own.join(".zshrc"), "A=rc\n").unwrap();
        settings
            .environment
            .push(("ZDOTDIR".into(), Some(own.into())));
    });
    let output = kept.output("echo \"$A $E ${ZDOTDIR##*/}\"").await;
    assert_eq!(output, "rc env own dir\n");
    let kept = Kept::with("zsh", "A=rc\n", |_| ());
    assert_eq!(
        kept.output("echo \"$A ${ZDOTDIR-none}\"").await,
        "rc none\n"
    );
}

#[tokio::test]
async fn a_debug_trap_sees_the_users_commands() {
    let kept = Kept::with(
        "bash",
        "trap 'echo \"$BASH_COMMAND\" >> ~/log' DEBUG\n",
        |_| (),
    );
    assert_eq!(kept.output("echo one; echo two").await, "one\ntwo\n");
    let log = std::fs::read_to_string(kept.path().join("log")).unwrap();
    assert!(log.contains("\necho one\necho two\n"), "{log}");
    assert!(kept.output("trap -p DEBUG").await.contains("BASH_COMMAND"));
}

#[tokio::test]
async fn traps_for_errors_and_the_end_are_the_users() {
    let kept = Kept::with(
        "bash",
        "trap 'echo err' ERR; trap 'echo bye' EXIT\n",
        |_| (),
    );
    assert_eq!(kept.output("true; false; true").await, "err\n");
    assert_eq!(kept.output("false && true").await, "");
    assert!(kept.output("exit").await.contains("bye\n"));
}

#[tokio::test]
async fn redirected_shells_and_odd_options_still_end_their_commands() {
    for name in SHELLS {
        let kept = Kept::new(name);
        kept.run("exec 3>&1 4>&2 > out 2> err").await;
        assert_eq!(
            kept.output("echo hidden; echo shown > /dev/tty").await,
            "shown\n",
            "{name}"
        );
        kept.run("exec >&3 2>&4").await;
        for options in [
            "set -x",
            "set -f -C -u",
            "IFS=x",
            "set -a",
            "set -v",
            "set -n 2> /dev/null; true",
        ] {
            if options.starts_with("set -n") && name == "zsh" {
                continue;
            }
            kept.run(options).await;
            let output = kept.output("echo next").await;
            assert!(output.contains("next\n"), "{name}: {options}: {output}");
        }
    }
}

#[tokio::test]
async fn a_prompt_that_cannot_be_set_does_not_hold_the_command() {
    let kept = Kept::with("bash", "readonly PS1='mine> '\n", |_| ());
    assert!(kept.output("echo one").await.contains("one\n"));
    assert!(kept.output("echo two").await.contains("two\n"));
}

#[tokio::test]
async fn a_shell_in_the_shell_is_a_program_like_others() {
    let kept = Kept::new("bash");
    let mut stream = kept.begin("PS1='in> ' bash --norc -i").await;
    until(&mut stream, "in> ").await;
    stream.keyboard().input(b"echo $((40 + 2)); exit 6\n").await;
    let ran = rest(stream).await;
    assert!(ran.output.contains("42\n"), "{}", ran.output);
    assert_eq!(ran.end.exit_code, 6);
}
