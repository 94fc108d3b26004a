//! Folders that must be reviewed: what runs there, what is loaded, and who is told.

use super::*;
use crate::agents::Agents;
use crate::env::Env;
use crate::notices::NoNotices;
use crate::script::InitFiles;
use crate::skills::Skills;
use crate::system_prompt;
use crate::table::Layer;
use crate::trust_question::TrustAnswers;
use rondo_core::events;
use rondo_core::redact::Secrets;
use rondo_core::{Approver, QuestionReply};
use rondo_sandbox::PROTECTED;
use rondo_types::{AskReason, Question, QuestionKind, SessionId, TimeMs, ToolSpec, TurnId};
use serde_json::json;
use std::fs;

/// A trusted project, and the user's home directory.
struct Folders {
    home: tempfile::TempDir,
    project: tempfile::TempDir,
}

impl Folders {
    fn new() -> Self {
        let folders = Self {
            home: tempfile::tempdir().unwrap(),
            project: tempfile::tempdir().unwrap(),
        };
        let trusted = format!("trusted_folders = [{:?}]", folders.project.path());
        fs::write(folders.home.path().join("config.toml"), trusted).unwrap();
        for (path, text) in [
            (".rondo/config.toml", "yolo = true"),
            (
                ".rondo/policy.toml",
                "[[rule]]\ntool = 't'\ndecision = 'allow'",
            ),
            (".rondo/init.lua", ""),
            (
                ".rondo/skills/theirs/SKILL.md",
                "---\nname: theirs\ndescription: d\n---\nx",
            ),
            (
                ".claude/agents/theirs.md",
                "---\nname: theirs\ndescription: d\n---\nx",
            ),
            (
                ".mcp.json",
                "{\"mcpServers\":{\"theirs\":{\"command\":\"x\"}}}",
            ),
            ("AGENTS.md", "planted instructions"),
        ] {
            let file = folders.project.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        folders
    }

    /// Plays a command that leaves a hook and is checked afterwards.
    fn leave_a_difference(&self) {
        let paths = self.settings().paths;
        let root = self.project.path().to_owned();
        let ledger = Ledger::at(ledger(&paths));
        let entry = ledger.begin("key", (1, 0), &[root], &PROTECTED).unwrap();
        fs::write(self.project.path().join(".envrc"), "planted").unwrap();
        assert!(!entry.end(&[]).unwrap());
    }

    fn settings(&self) -> Settings {
        let home = self.home.path().to_str().unwrap();
        let env = Env::of(&[("RONDO_HOME", home), ("HOME", home)]);
        let directory = self.project.path().to_owned();
        Settings::load(env, directory, Layer::default(), &NoNotices).unwrap()
    }

    /// Returns how much of the project is loaded, by what it is.
    fn loaded(&self) -> [bool; 7] {
        let settings = self.settings();
        let profile = rondo_core::profile::builtin("default").unwrap();
        let prompt = system_prompt::build(&profile, &settings, &Secrets::default(), Vec::new());
        [
            settings.values.yolo == Some(true),
            !settings.rules.rules().is_empty(),
            !InitFiles::find(&settings).files.is_empty(),
            Skills::find(&settings).for_model().next().is_some(),
            Agents::find(&settings).named("theirs").is_ok(),
            settings.mcp.note().is_some() || !settings.mcp.servers.is_empty(),
            prompt.concat().contains("planted instructions"),
        ]
    }
}

/// A gate that allows everything and offers to do so forever.
struct Yolo;

#[async_trait]
impl Gate for Yolo {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

fn request() -> GateRequest {
    GateRequest::new(
        ToolSpec {
            name: "exec".to_owned(),
            ..ToolSpec::default()
        },
        json!({"command": "make"}),
    )
}

#[test]
fn nothing_of_a_folder_is_loaded_until_its_differences_are_accepted() {
    let folders = Folders::new();
    assert_eq!(folders.loaded(), [true; 7]);
    folders.leave_a_difference();
    assert_eq!(folders.loaded(), [false; 7]);
    Review::of(&folders.settings()).accept().unwrap();
    assert_eq!(folders.loaded(), [true; 7]);
}

#[tokio::test]
async fn every_call_is_asked_about_until_the_differences_are_accepted() {
    let folders = Folders::new();
    let review = Review::of(&folders.settings());
    let gate = ReviewGate::new(Arc::new(Yolo), review.clone());
    assert_eq!(gate.check(&request()).await, Verdict::Allow);
    folders.leave_a_difference();
    let Verdict::Ask { prompt, reasons } = gate.check(&request()).await else {
        panic!("it runs unasked");
    };
    assert!(
        prompt.starts_with("`exec` wants to run with\n  command: make"),
        "{prompt}"
    );
    assert!(prompt.contains("rondo doctor --review"), "{prompt}");
    assert_eq!(reasons, [AskReason::UnreviewedFolder]);
    review.accept().unwrap();
    assert_eq!(gate.check(&request()).await, Verdict::Allow);
}

/// Answers all questions alike.
struct Says(Saying);

#[derive(Clone, Copy)]
enum Saying {
    Yes,
    No,
    Later,
}

#[async_trait]
impl Approver for Says {
    async fn ask(&self, question: &Question) -> QuestionReply {
        assert_eq!(question.kind, QuestionKind::Trust);
        assert!(question.prompt.contains(".envrc: added"), "{question:?}");
        match self.0 {
            Saying::Yes => QuestionReply::approved(question, "ada"),
            Saying::No => QuestionReply::denied(question, "ada", "no"),
            Saying::Later => QuestionReply::Later { expires: None },
        }
    }
}

fn answers(said: Saying) -> TrustAnswers {
    let answers = TrustAnswers::default();
    answers.ask(Some(Arc::new(Says(said))));
    answers
}

#[test]
fn a_person_who_can_be_asked_accepts_when_the_settings_are_read() {
    let folders = Folders::new();
    let review = Review::of(&folders.settings());
    assert!(review.is_done(&TrustAnswers::default()).unwrap());
    folders.leave_a_difference();
    assert!(!review.is_done(&TrustAnswers::default()).unwrap());
    for said in [Saying::Later, Saying::No] {
        assert!(!review.is_done(&answers(said)).unwrap());
        assert!(review.is_needed());
    }
    assert!(review.is_done(&answers(Saying::Yes)).unwrap());
    assert!(!review.is_needed());
}

#[test]
fn a_warning_names_the_files_and_how_to_accept_them() {
    let folders = Folders::new();
    let review = Review::of(&folders.settings());
    assert_eq!(review.warning(), None);
    folders.leave_a_difference();
    let warning = review.warning().unwrap();
    assert!(warning.contains("(`.envrc: added`)"), "{warning}");
    assert!(warning.contains("`rondo doctor --review`"), "{warning}");
}

#[tokio::test]
async fn a_turn_warns_at_its_start_and_when_one_of_its_commands_leaves_a_difference() {
    let folders = Folders::new();
    let review = Review::of(&folders.settings());
    let (sender, mut listener) = events::channel(SessionId::new("s"), TurnId::new("t"));
    let mode = Some(SandboxMode::WorkspaceWrite);
    let sender = ReviewWarnings::attach(sender, review, mode);
    let step = |step| sender.send(TimeMs(0), EventBody::StepStarted { step });
    step(1);
    folders.leave_a_difference();
    let finished = json!({
        "type": "tool_call_finished", "id": "c", "ok": true, "truncated": false, "duration_ms": 1,
        "result": { "sandbox": "the sandbox protects what the command changed: `x` could not be restored" },
    });
    sender.send(TimeMs(0), serde_json::from_value(finished).unwrap());
    step(2);
    drop(sender);
    let mut warnings = Vec::new();
    while let Some(event) = listener.next().await {
        if let EventBody::Warning { text } = event.body {
            warnings.push(text);
        }
    }
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].ends_with("`x` could not be restored"),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("must be reviewed"), "{warnings:?}");
}

#[test]
fn a_turn_without_a_sandbox_warns_of_what_is_there_already() {
    let folders = Folders::new();
    let review = Review::of(&folders.settings());
    folders.leave_a_difference();
    let (sender, mut listener) = events::channel(SessionId::new("s"), TurnId::new("t"));
    let sender = ReviewWarnings::attach(sender, review, None);
    sender.send(TimeMs(0), EventBody::StepStarted { step: 1 });
    drop(sender);
    let first = futures_util::FutureExt::now_or_never(listener.next());
    let first = first.flatten().map(|it| it.body);
    assert!(
        matches!(first, Some(EventBody::Warning { .. })),
        "what is there already is said"
    );
}
