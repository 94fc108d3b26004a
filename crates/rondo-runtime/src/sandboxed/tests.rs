//! Which folders count, what is offered in them, and what a choice does to the calls after it.

use super::*;
use crate::notices::NoNotices;
use crate::tools::standard_gate;
use rondo_policy::{AllowedDirs, GateOptions};
use rondo_types::{ToolKind, ToolSpec};
use serde_json::{Value, json};
use std::fs;
use std::sync::Mutex;

/// The user's home directory, with a folder in it.
struct Folders {
    home: tempfile::TempDir,
    folder: PathBuf,
}

impl Folders {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().canonicalize().unwrap().join("app");
        fs::create_dir(&folder).unwrap();
        Self { home, folder }
    }

    fn configure(&self, text: &str) {
        fs::write(self.home.path().join("config.toml"), text).unwrap();
    }

    fn load(&self, directory: &Path, env: &[(&str, &str)], flags: Layer) -> Settings {
        let home = self.home.path().to_str().unwrap();
        let env = [env, &[("RONDO_HOME", home), ("HOME", home)]].concat();
        Settings::load(Env::of(&env), directory.to_owned(), flags, &NoNotices).unwrap()
    }

    fn approval(&self, env: &[(&str, &str)], flags: Layer) -> Option<ApprovalMode> {
        self.load(&self.folder, env, flags).values.approval
    }

    fn offered(&self, text: &str, flags: Layer) -> bool {
        self.configure(text);
        may_be_offered(&self.load(&self.folder, &[], flags)).is_some()
    }
}

fn approving(mode: ApprovalMode) -> Layer {
    Layer {
        approval: Some(mode),
        ..Layer::default()
    }
}

#[test]
fn a_chosen_folder_and_what_is_below_it_are_in_auto_unless_something_else_is_said() {
    if !confined::is_full() {
        return;
    }
    let folders = Folders::new();
    let chosen = format!("sandboxed_folders = [{:?}]\n", folders.folder);
    folders.configure(&chosen);
    let auto = Some(ApprovalMode::Auto);
    assert_eq!(folders.approval(&[], Layer::default()), auto);
    let below = folders.folder.join("src");
    fs::create_dir(&below).unwrap();
    let settings = folders.load(&below, &[], Layer::default());
    assert_eq!(settings.values.approval, auto);
    assert_eq!(settings.source_of("approval"), Some(SOURCE));
    let beside = folders.load(folders.home.path(), &[], Layer::default());
    assert_eq!(beside.values.approval, None);

    let ask = Some(ApprovalMode::Ask);
    assert_eq!(
        folders.approval(&[], approving(ApprovalMode::Ask)),
        ask,
        "the command line"
    );
    let env = [("RONDO_APPROVAL", "ask")];
    assert_eq!(folders.approval(&env, Layer::default()), ask);
    for off in ["sandbox = 'off'\n", "yolo = true\n"] {
        folders.configure(&format!("{off}{chosen}"));
        assert_eq!(folders.approval(&[], Layer::default()), None, "{off}");
    }
    folders.configure(&chosen);
    let hub = Layer {
        sandboxed_folders: Some(Vec::new()),
        ..Layer::default()
    };
    assert_eq!(folders.approval(&[], hub), None, "a gateway");
}

#[test]
fn neither_a_project_nor_a_folder_around_the_home_directory_widens_anything() {
    let folders = Folders::new();
    fs::create_dir(folders.folder.join(".rondo")).unwrap();
    let own = format!("sandboxed_folders = [{:?}]\n", folders.folder);
    fs::write(folders.folder.join(".rondo/config.toml"), own).unwrap();
    for trusted in [
        String::new(),
        format!("trusted_folders = [{:?}]", folders.folder),
    ] {
        folders.configure(&trusted);
        let settings = folders.load(&folders.folder, &[], Layer::default());
        assert_eq!(settings.values.approval, None, "{trusted}");
    }
    let home = folders.home.path();
    folders.configure("sandboxed_folders = ['/']\n");
    let settings = folders.load(home, &[], Layer::default());
    assert_eq!(settings.values.approval, None);
    for refused in [home, Path::new("/")] {
        assert!(folder(refused, &settings).is_err(), "{refused:?}");
        let settings = folders.load(refused, &[], Layer::default());
        assert_eq!(may_be_offered(&settings), None, "{refused:?}");
    }
}

#[test]
fn it_is_offered_unless_approval_or_the_sandbox_is_decided_elsewhere() {
    let folders = Folders::new();
    for text in ["", "approval = 'ask'\n", "sandbox = 'workspace-write'\n"] {
        assert!(folders.offered(text, Layer::default()), "{text}");
    }
    for text in [
        "approval = 'auto'\n",
        "approval = 'deny'\n",
        "approval = 'park'\n",
        "sandbox = 'off'\n",
        "sandbox = 'read-only'\n",
        "yolo = true\n",
        "plan = true\n",
    ] {
        assert!(!folders.offered(text, Layer::default()), "{text}");
    }
    assert!(!folders.offered("", approving(ApprovalMode::Ask)));
    let added = Layer {
        add_dirs: Some(vec![folders.home.path().to_owned()]),
        ..Layer::default()
    };
    assert!(!folders.offered("", added));
}

fn request(name: &str, kind: ToolKind, arguments: Value) -> GateRequest {
    GateRequest::new(
        ToolSpec {
            name: name.to_owned(),
            kind,
            effects: rondo_types::Effects::Writes,
            ..ToolSpec::default()
        },
        arguments,
    )
}

fn command(line: &str) -> GateRequest {
    request("exec", ToolKind::Execute, json!({ "command": line }))
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notices for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

#[tokio::test]
async fn once_chosen_commands_run_unasked_and_the_users_settings_keep_it() {
    if !confined::is_full() {
        return;
    }
    let folders = Folders::new();
    let settings = folders.load(&folders.folder, &[], Layer::default());
    let gate = |settings: &Settings| {
        let mut options = GateOptions::new(AllowedDirs::new(&folders.folder, &[]).unwrap());
        options.confined = confined::of_gate(settings, &settings.rules);
        standard_gate(options)
    };
    let mut auto = settings.clone();
    auto.values.approval = Some(ApprovalMode::Auto);
    let spec = SandboxSpec::new(
        rondo_sandbox::SandboxMode::WorkspaceWrite,
        [&folders.folder],
    );
    let folder = may_be_offered(&settings).unwrap();
    let prepared = spec.clone();
    let offer = SandboxOffer::new(
        folder.clone(),
        &settings.paths,
        move || Ok(prepared.clone()),
    );
    let notes = Arc::new(Notes::default());
    let gate = SandboxGate {
        asks: gate(&settings),
        sandboxed: gate(&auto),
        offer: offer.clone(),
        notices: Arc::clone(&notes) as _,
    };

    let (makes, edits) = (
        command("make all"),
        request("edit_file", ToolKind::Edit, json!({ "path": "a" })),
    );
    let outside = request(
        "exec",
        ToolKind::Execute,
        json!({ "command": "make", "outside_sandbox": true }),
    );
    assert!(matches!(gate.check(&makes).await, Verdict::Ask { .. }));
    let is_offered = |terms: &Terms| terms.offers.iter().any(|it| it.scope.is_setting());
    for other in [&edits, &outside] {
        assert!(!is_offered(&gate.terms(other).await), "{other:?}");
    }
    let terms = gate.terms(&makes).await;
    let grant = terms.offers.last().unwrap().clone();
    assert_eq!(grant.scope, GrantScope::Sandbox { folder });
    assert!(!offer.is_chosen());

    gate.remember(&grant);
    assert_eq!(offer.chosen().get(), Some(&spec));
    assert_eq!(gate.check(&makes).await, Verdict::Allow);
    assert_eq!(gate.check(&command("rm -r build")).await, Verdict::Allow);
    for other in [&edits, &outside] {
        assert!(matches!(gate.check(other).await, Verdict::Ask { .. }));
    }
    assert!(!is_offered(&gate.terms(&makes).await));
    assert_eq!(gate.terms(&makes).await.hash, terms.hash);
    let said = notes.0.lock().unwrap().concat();
    assert!(
        said.contains("`rondo policy sandbox --revoke` undoes it"),
        "{said}"
    );
    let later = folders.load(&folders.folder, &[], Layer::default());
    assert_eq!(later.values.approval, Some(ApprovalMode::Auto));
    assert_eq!(may_be_offered(&later), None);
}
