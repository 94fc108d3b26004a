//! Skills of a folder and of the user, as the model and the user meet them.

use crate::harness::{TestEnv, calls, says, serve};
use crate::policy::messages_after;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const SKILL: &str = "---\nname: greet\ndescription: Greets people. Use it for: greetings\n---\n\
Run ${CLAUDE_SKILL_DIR}/greet.sh.\n";

/// A repository with a skill and its program.
fn with_skill() -> TestEnv {
    let env = TestEnv::new();
    let folder = env.project().join(".claude/skills/greet");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(env.project().join(".git")).unwrap();
    std::fs::write(folder.join("SKILL.md"), SKILL).unwrap();
    let program = folder.join("greet.sh");
    std::fs::write(&program, "#!/bin/sh\necho hello > greeted\n").unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(program, executable).unwrap();
    env
}

#[tokio::test]
async fn a_model_reads_what_a_skill_is_for_and_then_what_it_says() {
    let env = with_skill();
    let call = calls("skill", &json!({"name": "greet"}));
    let server = serve(vec![call, says("done")]).await;
    let shown = env.ask(&server, &["x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let requests: Vec<Value> = server.requests().iter().map(|it| it.json()).collect();
    let systems: Vec<&str> = requests
        .iter()
        .map(|it| it["messages"][0]["content"].as_str().unwrap())
        .collect();
    assert!(
        systems[0].contains("\n- greet: Greets people. Use it for: greetings"),
        "{}",
        systems[0]
    );
    assert_eq!(systems[0], systems[1]);
    let told = requests[1]["messages"].as_array().unwrap().last().unwrap();
    let read = told["content"].as_str().unwrap();
    let program = env.project().join(".claude/skills/greet/greet.sh");
    assert!(
        read.contains(&format!("Run {}.", program.display())),
        "{read}"
    );
    assert!(read.contains("files beside it"), "{read}");
}

#[tokio::test]
async fn a_folder_without_skills_offers_no_tool_for_them() {
    let env = TestEnv::new();
    let server = serve(vec![says("done")]).await;
    let shown = env.ask(&server, &["x"]).await;
    shown.check("done\n", "", 0);
    let request = server.requests().pop().unwrap().json();
    assert!(!request["tools"].to_string().contains("\"skill\""));
    assert!(!request.to_string().contains("Skills are"));
}

#[tokio::test]
async fn a_program_of_a_skill_runs_only_from_a_trusted_folder() {
    let env = with_skill();
    let greeted = || env.project().join("greeted").exists();
    for command in [
        ".claude/skills/greet/greet.sh",
        "sh .claude/skills/greet/greet.sh",
        "sh .claude/../.claude/skills/./greet/greet.sh",
    ] {
        let told = messages_after(&env, command).await;
        assert!(told.contains("a folder that is not trusted"), "{told}");
        assert!(!greeted(), "{command}");
    }
    assert_eq!(env.run(&["trust"]).await.code, Some(0));
    let call = calls(
        "exec",
        &json!({"command": "sh .claude/skills/greet/greet.sh"}),
    );
    let server = serve(vec![call, says("done")]).await;
    env.ask(&server, &["--yolo", "x"]).await;
    assert!(greeted());
}

#[tokio::test]
async fn skills_are_listed_and_shown() {
    let env = with_skill();
    let broken = env.home().join(".claude/skills/broken");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("SKILL.md"), "no front matter").unwrap();
    let listed = env.run(&["skills", "list"]).await;
    listed.check(
        "greet  project, not trusted  Greets people. Use it for: greetings\n\
         not used: [ROOT]/home/.claude/skills/broken/SKILL.md: it does not begin with the line `---`\n",
        "",
        0,
    );
    let shown = env.run(&["skills", "show", "greet"]).await;
    assert!(shown.stdout.contains("greet.sh.\n"), "{shown:?}");
    let missing = env.run(&["skills", "show", "other"]).await;
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("the skills are: greet"),
        "{missing:?}"
    );
}
