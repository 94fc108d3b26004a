//! Recorded scripts as a regression suite, and scripts that Rondo begins.

use crate::harness::{Shown, calls, says, serve};
use crate::world::{World, messages};
use serde_json::json;

const REPORT: &str = "\
local name = rondo.files.read('name')
local c = ('Greet ' .. name) | rondo.agent {}
rondo.exec('echo sent >> log')
print(c.text)
if name == 'nobody' then error('nobody is there') end
";

/// Runs the script for a name, and exports its session into the folder `cases`.
async fn recorded(name: &str, code: i32) -> World {
    let world = World::new(REPORT, serve(vec![says("Hello.")]).await);
    world.env.write("name", name);
    world.env.write("cases/.keep", "");
    let shown = world.run(&[]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("Hello.\n", Some(code)),
        "{shown:?}"
    );
    let listed = world.env.run(&["session", "list", "--json"]).await;
    let sessions = listed.lines();
    let script = sessions.iter().find(|it| it["title"] == "s.lua").unwrap();
    let id = script["id"].as_str().unwrap();
    let export = ["session", "export", id, "-o", "cases/report.jsonl"];
    assert_eq!(world.env.run(&export).await.code, Some(0));
    world
}

fn log(world: &World) -> String {
    std::fs::read_to_string(world.env.project().join("log")).unwrap()
}

async fn tested(world: &World, options: &[&str]) -> Shown {
    let mut all = vec!["test", "cases"];
    all.extend(options);
    world.env.run(&all).await
}

#[tokio::test]
async fn a_recorded_script_is_as_it_was_and_does_nothing() {
    for (name, code) in [("Ada", 0), ("nobody", 1)] {
        let world = recorded(name, code).await;
        tested(&world, &[]).await.check(
            "ok       report.jsonl: script, calls 3\n1 session: 1 as recorded, 0 changed, 0 failed\n",
            "",
            0,
        );
        assert_eq!(
            (log(&world).as_str(), world.requests().len()),
            ("sent\n", 1)
        );
    }
}

#[tokio::test]
async fn a_changed_script_is_told_where_it_leaves_its_records() {
    for (from, to, told) in [
        (
            "echo sent",
            "echo gone",
            "new.lua:3: `rondo.exec` is called with other arguments, but the records have `rondo.exec` of line 3 (call 4): the script took a different path when it was recorded",
        ),
        (
            "rondo.exec('echo sent >> log')\n",
            "",
            "new.lua:3: `rondo.exec` is no longer called",
        ),
        (
            "print(c.text)",
            "print(c.text, os.time())",
            "new.lua:4: `os.time` is called, and the records end before it",
        ),
        ("print(c.text)", "error('too late')", "new.lua:4: too late"),
        (
            "print(c.text)",
            "os.exit(3)",
            "new.lua: the script ends with exit code 3",
        ),
        (
            "print(c.text)",
            "print c.text",
            "new.lua:4: syntax error near 'c'",
        ),
    ] {
        let world = recorded("Ada", 0).await;
        world.env.write("new.lua", REPORT.replace(from, to));
        let shown = tested(&world, &["--script", "new.lua"]).await;
        let line = format!("changed  report.jsonl: {told}\n");
        assert!(shown.stdout.starts_with(&line), "{to}: {shown:?}");
        assert_eq!(shown.code, Some(4), "{to}");
        assert_eq!(
            (log(&world).as_str(), world.requests().len()),
            ("sent\n", 1)
        );
    }
    let world = recorded("Ada", 0).await;
    world
        .env
        .write("new.lua", format!("-- A comment.\n{REPORT}"));
    let shown = tested(&world, &["--script", "new.lua"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown = tested(&world, &["--script", "gone.lua"]).await;
    assert_eq!(shown.code, Some(42), "{shown:?}");
    assert!(
        shown
            .stderr
            .contains("failed to read the script `gone.lua`")
    );
}

#[tokio::test]
async fn a_session_of_no_script_is_not_replayed_as_one() {
    let world = World::new("", serve(vec![says("Hello.")]).await);
    world
        .env
        .ask(&world.server, &["Hi."])
        .await
        .check("Hello.\n", "", 0);
    let shown = world
        .env
        .run(&["replay", "latest", "--script", "s.lua"])
        .await;
    assert_eq!(shown.code, Some(2), "{shown:?}");
    assert!(
        shown.stderr.contains("does not belong to a script"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn what_a_new_script_begins_with_has_no_mistake_and_runs() {
    let look = calls("files", &json!({ "folder": "." }));
    let world = World::new("", serve(vec![look, says("It holds scripts.")]).await);
    let begun = world.env.run(&["run", "--new", "day.lua"]).await;
    assert_eq!(begun.code, Some(0), "{begun:?}");
    assert!(world.env.project().join("rondo.d.lua").exists());
    let checked = world.env.run(&["run", "--check", "day.lua"]).await;
    checked.check("", "", 0);
    let url = world.server.url("/v1");
    let run = ["run", "-m", "openai/test", "--base-url", &url, "day.lua"];
    let shown = world.env.run(&run).await;
    shown.check("It holds scripts.\n", "", 0);
    let read = messages(&world.requests()[1]).last().unwrap()["content"].clone();
    assert_eq!(read, "day.lua\nrondo.d.lua\ns.lua");
    let again = world.env.run(&["run", "--new", "day.lua"]).await;
    assert_eq!(again.code, Some(42), "{again:?}");
}
