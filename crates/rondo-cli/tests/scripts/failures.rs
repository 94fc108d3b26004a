//! Scripts that failed by one of their calls and continue once its cause is gone, and scripts whose journal is full.

use crate::harness::{Shown, serve};
use crate::world::World;
use rondo_testkit::{Response, Script, Server};
use std::path::Path;

/// Runs a script that fails by its last call, removes the cause of that, and has the script continue to its end.
async fn check_goes_on(
    script: &str,
    cause: impl FnOnce(&Path),
    cure: impl FnOnce(&Path),
    printed: &str,
) {
    let script = format!("rondo.exec('echo first >> log')\n{script}");
    let world = World::new(&script, serve(Vec::new()).await);
    let project = world.env.project();
    cause(&project);
    for _ in 0..2 {
        let failed = world.run(&["--resume"]).await;
        let failed = match failed.code {
            Some(45) => world.run(&[]).await,
            _ => failed,
        };
        assert_eq!(failed.code, Some(1), "{script}: {failed:?}");
    }
    cure(&project);
    world.run(&["--resume"]).await.check(printed, "", 0);
    // What succeeded is not made again.
    world.run(&["--resume"]).await.check(printed, "", 0);
    assert_eq!(read(&world, "log"), "first\n", "{script}");
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.env.project().join(name)).unwrap()
}

fn link_to_full_device(project: &Path) {
    std::os::unix::fs::symlink("/dev/full", project.join("out")).unwrap();
}

fn unlink(project: &Path) {
    std::fs::remove_file(project.join("out")).unwrap();
}

#[tokio::test]
async fn a_file_that_could_not_be_read_is_read_again_when_the_script_is_resumed() {
    for script in [
        "print(rondo.files.read('in/text'))",
        "print(#rondo.files.list('in'))",
        "print(require('in.text'))",
        "print(rondo.parallel { function() return rondo.files.read('in/text') end }[1])",
        "local ok, why = pcall(rondo.files.read, 'in/text')\nif not ok then error({ why }) end\nprint(why)",
    ] {
        let write = |project: &Path| {
            let text = match script.contains("require") {
                true => "return 1",
                false => "1",
            };
            std::fs::create_dir(project.join("in")).unwrap();
            std::fs::write(project.join("in/text"), text).unwrap();
            std::fs::write(project.join("in/text.lua"), text).unwrap();
        };
        let printed = match script.contains("list") {
            true => "2\n",
            false => "1\n",
        };
        check_goes_on(script, |_| {}, write, printed).await;
    }
}

#[tokio::test]
async fn a_file_that_could_not_be_written_is_written_when_the_script_is_resumed() {
    for function in ["write", "append"] {
        let script = format!("rondo.files.{function}('out', 'x')\nprint(rondo.files.read('out'))");
        check_goes_on(&script, link_to_full_device, unlink, "x\n").await;
    }
}

#[tokio::test]
async fn a_command_that_could_not_be_started_is_run_once_when_the_script_is_resumed() {
    let script = "print(rondo.exec('echo x >> ran; cat ran', { cwd = 'later' }).stdout)";
    let make = |project: &Path| std::fs::create_dir(project.join("later")).unwrap();
    check_goes_on(script, |_| {}, make, "x\n\n").await;
}

#[tokio::test]
async fn a_page_that_could_not_be_read_is_read_again_when_the_script_is_resumed() {
    let page = Response::html(200, "<article>Some words here.</article>");
    let responses = vec![Response::html(404, "gone"), page];
    let site = Server::start(Script::from(responses)).await;
    let script = format!(
        "print(rondo.http.get('{}'):match('Some words'))",
        site.url("/p")
    );
    let world = World::new(&script, serve(Vec::new()).await);
    let allowed = format!("web_allow_hosts = ['{}']\n", site.address());
    world.env.user_config(&allowed);
    let failed = world.run(&[]).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    world.run(&["--resume"]).await.check("Some words\n", "", 0);
    world.run(&["--resume"]).await.check("Some words\n", "", 0);
    assert_eq!(site.requests().len(), 2);
}

/// The text is longer than a file may be, so its beginning is written before the system says so.
#[tokio::test]
async fn a_text_that_was_appended_in_part_is_appended_once_when_the_script_is_resumed() {
    let script =
        "rondo.files.append('out', 'begun ')\nrondo.files.append('out', ('x'):rep(2 << 20))";
    let world = World::new(script, serve(Vec::new()).await);
    let failed = bounded(&world, 1024, &[]).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(read(&world, "out"), "begun ");
    world.run(&["--resume"]).await.check("", "", 0);
    assert_eq!(read(&world, "out").len(), 6 + (2 << 20));
}

#[tokio::test]
async fn a_failure_that_the_script_caught_stays_as_it_was_though_a_later_call_failed() {
    let script = "
print((pcall(rondo.files.read, 'a')))
print(rondo.parallel({ function() return (pcall(rondo.files.read, 'a')) end })[1])
print(rondo.files.read('b'))";
    let world = World::new(script, serve(Vec::new()).await);
    assert_eq!(world.run(&[]).await.code, Some(1));
    world.env.write("a", "a").write("b", "b");
    world
        .run(&["--resume"])
        .await
        .check("false\nfalse\nb\n", "", 0);
}

#[tokio::test]
async fn a_command_that_was_ended_with_its_script_is_not_repeated_and_the_message_says_so() {
    let script = "rondo.exec('echo x >> ran; sleep 100')";
    let world = World::new(script, serve(Vec::new()).await);
    let ended = world.run(&["--deadline", "2s"]).await;
    assert_eq!(ended.code, Some(124), "{ended:?}");
    for _ in 0..2 {
        let shown = world.run(&["--resume"]).await;
        assert_eq!(shown.code, Some(1), "{shown:?}");
        assert!(shown.stderr.contains("not repeated"), "{shown:?}");
        assert_eq!(read(&world, "ran"), "x\n");
    }
}

/// Runs the script with files of at most so many kilobytes.
async fn bounded(world: &World, kilobytes: u32, options: &[&str]) -> Shown {
    let url = world.server.url("/v1");
    let mut all = vec!["run", "-m", "openai/test", "--base-url", &url];
    all.extend(options);
    all.push("s.lua");
    let script = format!("ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    let mut command = world.env.wrapped(&script, &all);
    world.env.wait(command.spawn().unwrap()).await
}

#[tokio::test]
async fn a_full_journal_ends_a_script_with_54_whatever_it_catches() {
    for script in [
        "while true do rondo.files.write('x', 'x') end",
        "while true do pcall(rondo.files.write, 'x', 'x') end",
        "while true do pcall(function() rondo.exec('true') end) end",
        "while true do rondo.parallel { function() pcall(rondo.files.write, 'x', 'x') end } end",
        "for i = 1, 5000 do rondo.files.exists(('x'):rep(200)) end",
        "for i = 1, 5000 do rondo.files.exists(('x'):rep(200)) end\nerror('no')",
        "for i = 1, 1000 do _ = 'x' | rondo.agent {} end",
        "for i = 1, 1000 do pcall(function() return 'x' | rondo.agent {} end) end",
    ] {
        let server = Server::start(Script::repeat(rondo_testkit::openai::streamed(
            &crate::harness::says("y"),
        )))
        .await;
        let world = World::new(script, server);
        let shown = bounded(&world, 256, &[]).await;
        assert_eq!(shown.code, Some(54), "{script}: {shown:?}");
        assert!(shown.stderr.contains("error: "), "{script}: {shown:?}");
    }
}
