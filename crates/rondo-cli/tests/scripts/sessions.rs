//! The sessions of scripts and of their conversations, as the other commands see them.

use crate::harness::{Shown, says, serve};
use crate::world::{World, messages};

/// A script that was run, and what its server answers to what is asked after it.
async fn ran(later: &[&str]) -> World {
    let script = "\
rondo.exec('printf one')
rondo.files.append('log', 'x')
print('Hello.' | rondo.agent { name = 'greeter' })
pcall(rondo.files.read, 'gone')
";
    let replies = ["Good day."].iter().chain(later).map(|it| says(it));
    let world = World::new(script, serve(replies.collect()).await);
    world
        .run_with(&[], &["fast"])
        .await
        .check("Good day.\n", "", 0);
    world
}

/// Asks without a model's name in the way.
async fn ask(world: &World, options: &[&str]) -> Shown {
    world.env.ask(&world.server, options).await
}

/// Returns the ids of the script and of its conversation.
async fn ids(world: &World) -> (String, String) {
    let listed = world.env.run(&["session", "list", "--json"]).await;
    let sessions = listed.lines();
    let id = |at: usize| sessions[at]["id"].as_str().unwrap().to_owned();
    let script = sessions.iter().position(|it| it["title"] == "s.lua");
    let script = script.unwrap();
    let conversation = script + 1;
    assert_eq!(sessions[conversation]["child_of"], sessions[script]["id"]);
    (id(script), id(conversation))
}

#[tokio::test]
async fn a_script_is_shown_by_its_calls_and_conversations() {
    let world = ran(&[]).await;
    let (script, conversation) = ids(&world).await;
    let shown = world.env.run(&["session", "show", &script]).await;
    let expected = format!(
        "# s.lua\n\nSession `{script}` in `[ROOT]/project`\n\n\
         ## Script\n\n\
         *`s.lua fast` began*\n\n\
         *line 1: `rondo.exec` returned {{\"stdout\":\"one\",\"stderr\":\"\",\"ok\":true,\"exit_code\":0,\"signal\":null,\"timed_out\":false,\"truncated\":false}}*\n\n\
         *line 2: `rondo.files.append`*\n\n\
         *line 3: `agent:ask` returned Good day.*\n\n\
         *line 4: `rondo.files.read` failed: `gone`: No such file or directory (os error 2)*\n\n\
         *the script ended with exit code 0*\n\n\
         ## Conversations\n\n- `{conversation}`\n"
    );
    assert_eq!(shown.stdout, expected);
    let page = ["session", "show", &script, "--format", "html"];
    let page = world.env.run(&page).await.stdout;
    assert!(page.contains("<h2>Script</h2>") && page.contains("<h2>Conversations</h2>"));
    assert!(!page.contains("Python"), "{page}");
    let data = ["session", "show", &script, "--format", "json"];
    let data = world.env.run(&data).await.lines()[0].clone();
    assert_eq!(data["turns"][0]["script"].as_array().unwrap().len(), 6);
    assert_eq!(data["children"][0], conversation.as_str());
}

#[tokio::test]
async fn a_script_is_listed_with_its_conversations_and_removed_with_them() {
    let world = ran(&["Mine."]).await;
    ask(&world, &["Hi."]).await.check("Mine.\n", "", 0);
    let (script, conversation) = ids(&world).await;
    let two = world.env.run(&["session", "list", "-n", "2"]).await;
    assert!(two.stdout.contains(&conversation), "{two:?}");
    let removed = world.env.run(&["session", "rm", "-y", &script]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let left = world.env.run(&["session", "list", "--json"]).await;
    assert_eq!(left.lines().len(), 1, "{left:?}");
}

#[tokio::test]
async fn going_on_with_the_latest_conversation_passes_scripts_over() {
    let world = ran(&["Mine.", "Mine again."]).await;
    let nothing = ask(&world, &["-c", "And now?"]).await;
    assert_eq!(nothing.code, Some(45), "{nothing:?}");
    assert!(nothing.stderr.contains("belong to scripts"), "{nothing:?}");
    ask(&world, &["Hi."]).await.check("Mine.\n", "", 0);
    world.run_with(&["--resume"], &["fast"]).await;
    ask(&world, &["-c", "And now?"])
        .await
        .check("Mine again.\n", "", 0);
    let last = world.requests().last().unwrap().to_string();
    assert!(
        last.contains("Hi.") && !last.contains("Good day."),
        "{last}"
    );
}

#[tokio::test]
async fn a_conversation_of_a_script_goes_on_by_its_id_and_the_script_itself_does_not() {
    let world = ran(&["Better."]).await;
    let (script, conversation) = ids(&world).await;
    let refused = ask(&world, &["--session", &script, "And now?"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let why = format!("session `{script}` belongs to the script `s.lua`, and takes no questions");
    assert!(refused.stderr.contains(&why), "{refused:?}");
    let options = ["--session", &conversation, "And now?"];
    ask(&world, &options).await.check("Better.\n", "", 0);
    let request = world.requests().last().unwrap().clone();
    let said: Vec<&str> = messages(&request)
        .iter()
        .filter_map(|it| it["content"].as_str())
        .collect();
    assert!(
        said.ends_with(&["Hello.", "Good day.", "And now?"]),
        "{said:?}"
    );
    // The script itself continues as if nothing had been said.
    let resumed = world.run_with(&["--resume"], &["fast"]).await;
    resumed.check("Good day.\n", "", 0);
}
