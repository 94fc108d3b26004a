//! The commands on stores that each version of the format wrote.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, CTRL_D, Person};
use crate::repl_cells::sleeping;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A version's folder, and its sessions with their turns. The last turn of a session `open-` was cut off.
const VERSIONS: [(&str, &[(&str, u64)]); 8] = [
    (
        "v1",
        &[
            ("plain", 2),
            ("resumed", 2),
            ("forked", 2),
            ("compacted", 4),
        ],
    ),
    (
        "v2",
        &[
            ("plain", 2),
            ("resumed", 2),
            ("forked", 2),
            ("compacted", 4),
            ("celled", 2),
        ],
    ),
    (
        "v2-last",
        &[
            ("attached", 2),
            ("brought", 2),
            ("cancelled", 3),
            ("celled", 1),
            ("compacted", 4),
            ("cut", 1),
            ("doubted", 1),
            ("dropped", 4),
            ("failed", 4),
            ("faulted", 2),
            ("few", 3),
            ("forked", 2),
            ("given-up", 2),
            ("guarded", 1),
            ("judged", 2),
            ("limited", 2),
            ("plain", 2),
            ("resumed", 2),
            ("several", 1),
            ("steered", 1),
            ("summed-up", 4),
            ("typed", 1),
            ("worded", 3),
            ("open-answered", 1),
            ("open-asked", 1),
            ("open-between", 1),
            ("open-cancelled", 1),
            ("open-fallback", 1),
            ("open-in-doubt", 1),
            ("open-look", 1),
            ("open-move-done", 1),
            ("open-move-not-done", 1),
            ("open-move-running", 1),
            ("open-move-unknown", 1),
            ("open-put", 1),
            ("open-repeated", 1),
            ("open-reply", 1),
            ("open-request", 2),
            ("open-resumed", 1),
            ("open-second", 1),
            ("open-send", 1),
            ("open-steered", 1),
            ("open-wipe", 1),
        ],
    ),
    ("v3", &[("parked", 2), ("open-parked", 1)]),
    ("v3-amended", &[("intercepted", 2), ("reserved", 1)]),
    ("v3-equipped", &[("equipped", 1)]),
    ("v3-ruled", &[("ruled", 1)]),
    ("v4-folder", &[("asked-folder", 2)]),
];

fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/journal")
        .join(version)
}

fn sessions_of(version: &str) -> &'static [(&'static str, u64)] {
    VERSIONS.iter().find(|(it, _)| *it == version).unwrap().1
}

fn exported_file(version: &str, name: &str) -> String {
    fs::read_to_string(folder(version).join(format!("{name}.jsonl"))).unwrap()
}

/// A home with the store that a version wrote.
fn home(version: &str) -> TestEnv {
    let env = TestEnv::new();
    let sessions = env.home().join(".local/share/rondo/sessions");
    fs::create_dir_all(&sessions).unwrap();
    fs::copy(
        folder(version).join("journal.db"),
        sessions.join("journal.db"),
    )
    .unwrap();
    env
}

/// Returns an exported file without what its first line says of its end, which older ones do not say.
fn unannounced(file: &str) -> (Value, &str) {
    let (head, records) = file.split_once('\n').unwrap();
    let mut head: Value = serde_json::from_str(head).unwrap();
    for name in ["records", "end_hash"] {
        head.as_object_mut().unwrap().remove(name);
    }
    (head, records)
}

#[tokio::test]
async fn each_session_is_listed_shown_checked_exported_and_replayed_as_it_was() {
    for (version, sessions) in VERSIONS {
        let env = home(version);
        let list = env
            .run(&["session", "list", "-n", "99", "--json"])
            .await
            .lines();
        assert_eq!(list.len(), sessions.len());
        for (name, turns) in sessions {
            let row = list.iter().find(|it| it["id"] == *name).unwrap();
            let state = match *name {
                "open-parked" => "parked",
                name if name.starts_with("open-") => "cut_off",
                _ => "done",
            };
            assert_eq!(
                (&row["turns"], &row["state"]),
                (&(*turns).into(), &state.into()),
                "{name}"
            );
            let shown = env
                .run(&["session", "show", name, "--format", "json"])
                .await;
            let shown = shown.lines();
            let told = shown[0]["turns"].as_array().unwrap().iter();
            let told = told.filter(|turn| turn["number"] != 0).count();
            assert_eq!(told as u64, *turns, "{name}");
            let kept = exported_file(version, name);
            let exported = env.run(&["session", "export", name]).await;
            assert_eq!(unannounced(&exported.stdout), unannounced(&kept), "{name}");
            let replayed = env.run(&["replay", name, "--strict"]).await;
            assert_eq!(replayed.code, Some(0), "{name}: {replayed:?}");
        }
        let checked = env.run(&["session", "fsck"]).await;
        assert_eq!(
            (checked.code, checked.stdout.lines().count()),
            (Some(0), sessions.len())
        );
    }
}

/// A provider of the name that the fixtures ask.
fn provider(fallbacks: &str, url: &str) -> String {
    format!(
        "model = 'p/m'\nfallbacks = {fallbacks}\n[providers.p]\ndialect = 'openai-chat'\n\
         base_url = '{url}'\napi_key_command = 'printf k-1'\n"
    )
}

#[tokio::test]
async fn each_last_session_is_imported_elsewhere_replayed_and_forked() {
    let (env, other) = (home("v2-last"), TestEnv::new());
    let sessions = sessions_of("v2-last");
    let server = serve(vec![says("It is done."); sessions.len()]).await;
    let url = server.url("/v1");
    other.user_config(&provider("[]", &url));
    for (name, _) in sessions {
        let exported = env.home().join(format!("{name}.jsonl"));
        let exported = exported.to_str().unwrap();
        let kept = env.run(&["session", "export", name, "-o", exported]).await;
        assert_eq!(kept.code, Some(0), "{name}: {kept:?}");
        let imported = other.run(&["session", "import", exported]).await;
        assert_eq!(imported.code, Some(0), "{name}: {imported:?}");
        let replayed = other.run(&["replay", name, "--strict"]).await;
        assert_eq!(replayed.code, Some(0), "{name}: {replayed:?}");
        let fork = ["fork", name, "--at", "1", "--message", "Or so?"];
        let forked = other
            .run(&[&fork[..], &["--base-url", &url]].concat())
            .await;
        // A step that was cut off is no place to fork at.
        if name.starts_with("open-") && forked.code != Some(0) {
            let why = "was cut off before its end";
            assert!(forked.stderr.contains(why), "{name}: {forked:?}");
            continue;
        }
        assert_eq!(forked.code, Some(0), "{name}: {forked:?}");
        let fork = forked.stderr.split('`').nth(1).unwrap();
        let replayed = other.run(&["replay", fork, "--strict"]).await;
        assert_eq!(replayed.code, Some(0), "{name}: {replayed:?}");
    }
    let checked = other.run(&["session", "fsck"]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

/// The program does not have the tools of the fixtures: calls that were in doubt stay so.
#[tokio::test]
async fn each_last_session_is_carried_on_gone_on_with_and_replayed() {
    let env = home("v2-last");
    let sessions = sessions_of("v2-last");
    let server = serve(vec![says("It is done."); 2 * sessions.len()]).await;
    let url = server.url("/v1");
    for (name, turns) in sessions {
        let (fallbacks, code, answer) = match *name {
            "open-cancelled" => ("[]", 1, ""),
            // The other model is at another address now, which the turn did not use.
            "open-fallback" => ("['p/m2']", 52, ""),
            _ => ("[]", 0, "It is done.\n"),
        };
        env.user_config(&provider(fallbacks, &url));
        if name.starts_with("open-") {
            let resume = ["resume", name, "--yolo", "--base-url", &url];
            let resumed = env.run(&resume).await;
            let ended = (resumed.code, resumed.stdout.as_str());
            assert_eq!(ended, (Some(code), answer), "{name}: {resumed:?}");
        }
        if code == 52 {
            continue;
        }
        let ask = ["ask", "--session", name, "-C", ".", "--base-url", &url];
        let asked = env.run(&[&ask[..], &["And now?"]].concat()).await;
        assert_eq!(asked.code, Some(0), "{name}: {asked:?}");
        let shown = env.run(&["session", "show", name]).await;
        assert_eq!(shown.code, Some(0), "{name}: {shown:?}");
        let replayed = env.run(&["replay", name, "--strict"]).await;
        assert_eq!(replayed.code, Some(0), "{name}: {replayed:?}");
        let list = env.run(&["session", "list", "-n", "99", "--json"]).await;
        let list = list.lines();
        let row = list.iter().find(|it| it["id"] == *name).unwrap();
        let now = (&row["turns"], &row["state"]);
        assert_eq!(now, (&json!(turns + 1), &json!("done")), "{name}");
    }
    let checked = env.run(&["session", "fsck"]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[tokio::test]
async fn a_store_of_a_newer_major_version_is_refused_and_says_what_to_do() {
    let env = home("v1");
    let path = env.home().join(".local/share/rondo/sessions/journal.db");
    // The version of the tables: SQLite's `user_version`, four bytes from the sixtieth on.
    let mut bytes = fs::read(&path).unwrap();
    bytes[63] = 2;
    fs::write(&path, &bytes).unwrap();
    for command in [&["session", "list"][..], &["replay", "plain"], &["resume"]] {
        let refused = env.run(command).await;
        assert_eq!(refused.code, Some(54), "{refused:?}");
        for part in ["has version 2", "knows 1 and older", "install the version"] {
            assert!(refused.stderr.contains(part), "{part}: {refused:?}");
        }
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// Types what a person answers, stops and ends, and what runs again.
async fn run_in_every_way(env: &TestEnv, person: &mut Person) {
    person.enter("name = input('name? ')").await;
    person.types_behind("name? ").await;
    person.press("Ada\r").await;
    person.prompt("python").await;
    person.enter("# make y").await;
    person.sees("I made y.").await;
    person.prompt("python").await;
    sleeping(env, person).await;
    person.press(CTRL_C).await;
    person.prompt("python").await;
    person.enter("import os; os._exit(3)").await;
    person.sees("ended with exit code 3").await;
    person.prompt("python").await;
    person
        .enter("import os; open('pid', 'w').write(str(os.getpid()))")
        .await;
    person.prompt("python").await;
    let python = fs::read_to_string(env.project().join("pid")).unwrap();
    let python = Pid::from_raw(python.parse().unwrap()).unwrap();
    kill_process(python, Signal::KILL).unwrap();
    while test_kill_process(python).is_ok() {
        tokio::task::yield_now().await;
    }
    for line in ["w = 1", "z = 1"] {
        person.enter(line).await;
        person.prompt("python").await;
    }
    person.enter("/restore").await;
    person.sees("ran again").await;
    person.prompt("python").await;
}

/// A session of the prompt in which Python cells were run in every way that is recorded. Exported to the
/// file that `RONDO_WRITE_CELLS` names, it becomes the `celled` of a new set of fixtures.
#[tokio::test]
async fn todays_prompt_records_cells_in_every_way() {
    let server = serve(vec![
        calls("run_code", &json!({ "code": "y = x + 1" })),
        says("I made y."),
    ])
    .await;
    let env = TestEnv::new().var("MY_TOKEN", "k-1234567890");
    let url = server.url("/v1");
    // Without the prompt's facts about this machine.
    let asks = [
        "repl",
        "--mode",
        "python",
        "--yolo",
        "-m",
        "openai/test",
        "--base-url",
        &url,
    ];
    let brief = ["--system-prompt", "Be brief."];
    let mut person = Person::start(&env, &[&asks[..], &brief].concat());
    person.prompt("python").await;
    for line in [
        "x = 41",
        "x + 1",
        "import sys; print('out'); print('err', file=sys.stderr)",
        "1 / 0",
        "key = 'k-1234567890'",
    ] {
        person.enter(line).await;
        person.prompt("python").await;
    }
    run_in_every_way(&env, &mut person).await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
    let list = env.run(&["session", "list", "--json"]).await.lines();
    let session = list[0]["id"].as_str().unwrap();
    let path = env.home().join("celled.jsonl");
    let export = ["session", "export", session, "-o", path.to_str().unwrap()];
    assert_eq!(env.run(&export).await.code, Some(0));
    let written = fs::read_to_string(&path).unwrap();
    if let Some(to) = std::env::var_os("RONDO_WRITE_CELLS") {
        fs::write(to, &written).unwrap();
    }
    assert_eq!(forms(&written), forms(&exported_file("v2-last", "celled")));
    let replayed = env.run(&["replay", session, "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

/// In what ways an export tells of cells: the names of all that is in their records, and the words
/// among it.
fn forms(exported: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for line in exported.lines().skip(1) {
        let record: Value = serde_json::from_str(line).unwrap();
        let body = record["body"].as_object().unwrap();
        let kind = body["kind"].as_str().unwrap();
        if kind.starts_with("cell") {
            forms.extend(body.keys().map(|key| format!("{kind} {key}")));
            forms.extend(body.get("changed").map(|it| format!("{kind} changed {it}")));
            forms.extend(body.get("ending").map(|it| format!("{kind} {}", it["how"])));
        }
    }
    forms
}
