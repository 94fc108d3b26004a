//! The full screen in tmux: another emulator than the one of the other tests, between the screen and a person.
//! They need `tmux`, which `cargo xtask test` installs.

use crate::harness::{TestEnv, says, serve};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use std::process::Output;
use std::time::Duration;
use tokio::process::Command;

/// How often is looked, and how many times, before something counts as not there.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 1_200;

/// A server of tmux with one window of one pane, which ends with the test.
struct Tmux {
    socket: String,
    env: TestEnv,
}

impl Tmux {
    /// Starts a shell in which the screen is opened.
    async fn start(env: TestEnv, server: &Server) -> Self {
        let socket = env.home().join("tmux").display().to_string();
        let tmux = Self { socket, env };
        // What is copied comes to tmux's own buffer.
        tmux.runs(&[
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            "bash",
            "--norc",
            "--noprofile",
        ])
        .await;
        tmux.runs(&["set-option", "-g", "set-clipboard", "on"])
            .await;
        tmux.runs(&["set-option", "-g", "window-size", "manual"])
            .await;
        tmux.types(&format!(
            "PS1='ready> '; '{}' -m openai/test --base-url {}",
            env!("CARGO_BIN_EXE_rondo"),
            server.url("/v1")
        ))
        .await;
        tmux.presses("Enter").await;
        tmux.shows("? help").await;
        tmux
    }

    async fn tmux(&self, args: &[&str]) -> Output {
        let plain = self.env.command(&[]);
        let set = plain.as_std().get_envs();
        let set = set.filter_map(|(name, value)| Some((name, value?)));
        Command::new("tmux")
            .args(["-S", &self.socket, "-f", "/dev/null"])
            .args(args)
            .env_clear()
            .envs(set)
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.env.project())
            .output()
            .await
            .unwrap()
    }

    async fn runs(&self, args: &[&str]) {
        let output = self.tmux(args).await;
        assert!(output.status.success(), "{args:?}: {output:?}");
    }

    async fn types(&self, text: &str) {
        self.runs(&["send-keys", "-l", text]).await;
    }

    async fn presses(&self, key: &str) {
        self.runs(&["send-keys", key]).await;
    }

    async fn screen(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p"]).await;
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until something holds of what is on the screen.
    async fn until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let mut screen = String::new();
        for _ in 0..LOOKS_MAX {
            screen = self.screen().await;
            if holds(&screen) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("{what} does not come; on the screen:\n{screen}");
    }

    async fn shows(&self, text: &str) {
        self.until(text, |it| it.contains(text)).await;
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may be gone by itself.
        let _ = std::process::Command::new("tmux")
            .args(["-S", &self.socket, "kill-server"])
            .output();
    }
}

fn frames(screen: &str) -> usize {
    screen.lines().filter(|it| it.starts_with('╭')).count()
}

#[tokio::test]
async fn in_tmux_an_answer_is_copied_and_stands_in_the_scrollback_afterwards() {
    let server = serve(vec![says("It is **four**, and 日本 is wide.")]).await;
    let tmux = Tmux::start(TestEnv::new(), &server).await;
    tmux.types("2+2?").await;
    tmux.presses("Enter").await;
    tmux.shows("It is four, and 日本 is wide.").await;
    tmux.shows("1 step ·").await;
    tmux.presses("M-c").await;
    tmux.shows("copied 1 line").await;
    let copied = tmux.tmux(&["show-buffer"]).await;
    let copied = String::from_utf8(copied.stdout).unwrap();
    assert_eq!(copied.trim_end(), "It is **four**, and 日本 is wide.");
    tmux.presses("C-d").await;
    tmux.until("the prompt", |it| it.trim_end().ends_with("ready>"))
        .await;
    tmux.shows("It is four, and 日本 is wide.").await;
}

#[tokio::test]
async fn in_tmux_the_screen_follows_a_storm_of_sizes() {
    let gate = Gate::new();
    let text = "word ".repeat(300);
    let responses = vec![openai::streamed(&says(&text)).before(Step::Gate(gate.clone()))];
    let server = Server::start(Script::from(responses)).await;
    let tmux = Tmux::start(TestEnv::new(), &server).await;
    tmux.types("go").await;
    tmux.presses("Enter").await;
    gate.reached().await;
    for at in 0_u16..30 {
        let (width, height) = (
            (30 + at * 7 % 90).to_string(),
            (8 + at * 5 % 30).to_string(),
        );
        tmux.runs(&["resize-window", "-x", &width, "-y", &height])
            .await;
        if at == 10 {
            gate.open();
        }
    }
    tmux.runs(&["resize-window", "-x", "90", "-y", "24"]).await;
    tmux.shows("1 step ·").await;
    tmux.until("one frame", |it| frames(it) == 1 && it.contains("? help"))
        .await;
}

#[tokio::test]
async fn in_tmux_ctrl_z_gives_the_shell_its_prompt_and_fg_the_screen_as_it_was() {
    let server = serve(vec![says("Four."), says("Five.")]).await;
    let tmux = Tmux::start(TestEnv::new(), &server).await;
    tmux.types("2+2?").await;
    tmux.presses("Enter").await;
    tmux.shows("1 step ·").await;
    tmux.presses("C-z").await;
    tmux.until("the prompt", |it| it.trim_end().ends_with("ready>"))
        .await;
    tmux.shows("Four.").await;
    tmux.types("echo shell-$((1 + 1))").await;
    tmux.presses("Enter").await;
    tmux.shows("shell-2").await;
    tmux.types("fg").await;
    tmux.presses("Enter").await;
    tmux.until("the screen", |it| frames(it) == 1 && it.contains("? help"))
        .await;
    tmux.types("2+3?").await;
    tmux.presses("Enter").await;
    tmux.shows("Five.").await;
    tmux.presses("C-d").await;
    tmux.until("the prompt", |it| it.trim_end().ends_with("ready>"))
        .await;
}

#[tokio::test]
async fn in_tmux_what_stands_in_the_pane_beside_is_shown_before_it_goes_along() {
    let server = serve(vec![says("Seen.")]).await;
    let tmux = Tmux::start(TestEnv::new(), &server).await;
    let beside = ["split-window", "-h", "bash", "--norc", "--noprofile"];
    tmux.runs(&beside).await;
    tmux.types("echo beside$((40+2))").await;
    tmux.presses("Enter").await;
    tmux.shows("beside42").await;
    tmux.runs(&["select-pane", "-L"]).await;
    tmux.shows("? help").await;
    tmux.types("/terminal").await;
    tmux.presses("Enter").await;
    tmux.shows("for the agent").await;
    tmux.shows("beside42").await;
    assert!(server.requests().is_empty());
    tmux.presses("Enter").await;
    tmux.shows("+ terminal · ").await;
    tmux.types("what is beside?").await;
    tmux.presses("Enter").await;
    tmux.shows("Seen.").await;
    let sent = server.requests()[0].json()["messages"].to_string();
    assert!(sent.contains("beside42"), "{sent}");
}
