//! Files of a workspace in prompts, readers of private ones, and the hub's own tools.

use crate::world::{RunningHub, USERS, World, calls, content, last_said, text, tools};
use rondo_core::ports::OutboxKind;
use rondo_testkit::{ReplyScript, Response, Script, openai};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

impl World {
    pub(crate) fn workspace(&self) -> PathBuf {
        self.home.path().join("data/hub/workspace")
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Someone says something in their private chat, and the answer is waited for. Returns what they saw last.
    pub(crate) async fn ask(&self, sender: &str, said: &str) -> String {
        let seen = self.messenger.seen(sender).len();
        self.messenger.say(sender, said);
        let mut seen = self.messenger.until(sender, seen + 1).await;
        seen.pop().unwrap().text
    }
}

fn system(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let system = messages.iter().filter(|it| it["role"] == "system");
    system.map(content).collect::<Vec<_>>().join("\n\n")
}

fn fill(world: &World) {
    world.put("SOUL.md", "1 soul");
    world.put("AGENTS.md", "1 agents");
    world.put("BOOTSTRAP.md", "2 bootstrap");
    world.put("USER.md", "2 user");
    world.put("MEMORY.md", "- 3 memory");
    world.put(
        "skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: 4 skill\n---\nFill in.\n",
    );
    world.put("TOOLS.md", "5 tools");
}

#[tokio::test]
async fn hub_2_hub_25_seven_layers_stand_in_order_and_the_first_five_are_equal_in_every_turn() {
    let world = World::new(Script::repeat(text(&["6 answer"]))).await;
    fill(&world);
    let hub = world.start();
    for said in ["6 question", "7 current"] {
        world.ask("ann", said).await;
    }
    hub.stop().await;
    let requests = world.requests();
    let layers = [
        "1 soul",
        "1 agents",
        "2 bootstrap",
        "2 user",
        "3 memory",
        "4 skill",
        "5 tools",
    ];
    let shown = system(&requests[1]);
    let places = layers.map(|it| shown.find(it).unwrap_or_else(|| panic!("{it} in {shown}")));
    assert!(places.is_sorted(), "{shown}");
    assert_eq!(system(&requests[0]), shown, "byte for byte");
    assert!(
        shown.contains("private chat on wire with ann (owner)"),
        "{shown}"
    );
    let messages = requests[1]["messages"].as_array().unwrap();
    let said = messages.iter().filter(|it| it["role"] != "system");
    let said: Vec<String> = said.map(content).collect();
    assert_eq!(said.len(), 3);
    assert!(said[0].ends_with("6 question") && said[2].ends_with("7 current"));
    assert_eq!(said[1], "6 answer");
}

#[tokio::test]
async fn what_is_private_is_read_in_the_owners_private_chats_alone() {
    let world = World::new(Script::repeat(text(&["Yes."]))).await;
    fill(&world);
    let hub = world.start();
    for sender in ["ann", "bob", "gus"] {
        world.ask(sender, "Hello.").await;
    }
    world.messenger.write("group", "ann", "Hello.", false);
    world.messenger.until("group", 1).await;
    hub.stop().await;
    let requests = world.requests();
    let is_shown = |what: &str| {
        let shown = requests.iter().map(|it| it.to_string().contains(what));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(is_shown("3 memory"), [true, false, false, false]);
    assert_eq!(is_shown("2 user"), [true, false, false, false]);
    assert_eq!(is_shown("1 soul"), [true; 4]);
    let offers = |name: &str| {
        let offered = requests
            .iter()
            .map(|it| tools(it).iter().any(|tool| tool == name));
        offered.collect::<Vec<_>>()
    };
    assert_eq!(offers("cron"), [true, true, false, false]);
    for name in ["create_skill", "delete_skill"] {
        assert_eq!(offers(name), [true, false, false, false], "{name}");
    }
    for name in ["write_memory", "search_memory"] {
        assert_eq!(offers(name), [true, true, false, false], "{name}");
    }
    for name in ["message", "spawn", "list_skills", "read_skill"] {
        assert_eq!(offers(name), [true, true, false, true], "{name}");
    }
    assert_eq!(offers("save_memory"), [false; 4]);
}

#[tokio::test]
async fn a_memory_is_written_into_the_workspace_and_the_prompt_of_its_session_stays_equal() {
    let save = calls(&[("a", "write_memory", json!({"text": "Ann likes tea."}))]);
    let world = World::new([save, text(&["Noted."]), text(&["Tea."])]).await;
    let hub = world.start();
    assert_eq!(world.ask("ann", "I like tea.").await, "Noted.");
    let file = fs::read_to_string(world.workspace().join("memory/MEMORY.md")).unwrap();
    assert!(file.contains("Ann likes tea."), "{file}");
    world.ask("ann", "What do I like?").await;
    hub.stop().await;
    let requests = world.requests();
    assert_eq!(system(&requests[0]), system(&requests[2]));
}

#[tokio::test]
async fn what_was_remembered_today_is_in_the_first_message_after_the_chat_began_anew() {
    let save = calls(&[("a", "write_memory", json!({"text": "Ann likes tea."}))]);
    let replies = [save, text(&["Noted."]), text(&["Tea."]), text(&["Tea!"])];
    let world = World::new(replies).await;
    let hub = world.start();
    world.ask("ann", "I like tea.").await;
    world.ask("ann", "/new").await;
    world.ask("ann", "What do I like?").await;
    world.ask("ann", "Really?").await;
    hub.stop().await;
    let requests = world.requests();
    assert!(!system(&requests[1]).contains("Ann likes tea."));
    assert!(system(&requests[2]).contains("Ann likes tea."));
    assert_eq!(system(&requests[2]), system(&requests[3]));
}

#[tokio::test]
async fn a_chat_that_begins_anew_keeps_its_directory() {
    let write = calls(&[("a", "write_file", json!({"path": "note", "content": "x"}))]);
    let list = calls(&[("b", "list_files", json!({"path": "."}))]);
    let replies = [write, text(&["Written."]), list, text(&["Listed."])];
    let mut world = World::new(replies).await;
    world.flags.yolo = Some(true);
    let hub = world.start();
    world.ask("ann", "Write.").await;
    world.ask("ann", "/new").await;
    world.ask("ann", "List.").await;
    hub.stop().await;
    let listed = last_said(world.requests().last().unwrap());
    assert!(listed.contains("note"), "{listed}");
}

#[tokio::test]
async fn each_member_has_memories_that_nobody_else_reads_or_finds() {
    let save = |text: &str| calls(&[("a", "write_memory", json!({"text": text}))]);
    let search = || calls(&[("s", "search_memory", json!({"query": "tea"}))]);
    let script = Script::answering(move |request| {
        let said = last_said(&request.json());
        let words: Vec<&str> = said
            .lines()
            .last()
            .unwrap_or_default()
            .split(": ")
            .collect();
        match words.as_slice() {
            ["Remember", what] => save(what),
            ["Search"] => search(),
            _ => text(&[&said]),
        }
    });
    let mut world = World::new(script).await;
    // Names that would lead elsewhere, or to the directory of another one.
    world.config = "
        [users.ann]\nrole = 'owner'\nids = ['wire:ann']
        [users.'../workspace']\nrole = 'member'\nids = ['wire:bob']
        [users.'..:2fworkspace']\nrole = 'member'\nids = ['wire:cid']
        [users.gus]\nrole = 'guest'\nids = ['wire:gus']
    "
    .to_owned();
    let hub = world.start();
    for who in ["ann", "bob", "cid"] {
        let noted = world.ask(who, &format!("Remember: {who} likes tea.")).await;
        assert!(!noted.contains("error"), "{noted}");
    }
    for who in ["ann", "bob", "cid"] {
        let found = world.ask(who, "Search").await;
        for other in ["ann", "bob", "cid"] {
            let is_found = found.contains(&format!("{other} likes tea"));
            assert_eq!(is_found, who == other, "{who}: {found}");
        }
    }
    // What a guest or a group asks for is not there.
    for (chat, who) in [("gus", "gus"), ("group", "bob"), ("group", "ann")] {
        let seen = world.messenger.seen(chat).len();
        world.messenger.write(chat, who, "Search", false);
        let seen = world.messenger.until(chat, seen + 1).await;
        let found = &seen.last().unwrap().text;
        assert!(!found.contains("likes tea"), "{who} in {chat}: {found}");
    }
    // It is read from the start in a later conversation of that person alone.
    let people = world.home.path().join("data/hub/people");
    let mut places: Vec<PathBuf> = fs::read_dir(&people)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    assert_eq!(places.len(), 2);
    places.push(world.workspace());
    for place in places {
        date_back(&place.join("memory/MEMORY.md"));
    }
    for who in ["ann", "bob", "cid", "gus"] {
        world.ask(who, "/new").await;
        world.ask(who, "Hello.").await;
        let shown = system(world.requests().last().unwrap());
        for other in ["ann", "bob", "cid"] {
            let is_shown = shown.contains(&format!("{other} likes tea"));
            assert_eq!(is_shown, who == other, "{who}: {shown}");
        }
    }
    hub.stop().await;
}

/// Dates memories long ago: those of the same day are shown from the next one on.
fn date_back(file: &Path) {
    const SAVED: &str = "rondo: saved ";
    let text = fs::read_to_string(file).unwrap();
    let (before, after) = text.split_once(SAVED).unwrap();
    let text = format!("{before}{SAVED}2020-01-01{}", &after["2020-01-01".len()..]);
    fs::write(file, text).unwrap();
}

#[tokio::test]
async fn layers_are_fitted_by_what_the_provider_counted_and_stay_equal_in_a_session() {
    // Two bytes a token, where four are taken without a count.
    let script = Script::answering(|request| {
        let bytes: usize = request.json().to_string().len();
        let tokens = u64::try_from(bytes / 2).unwrap();
        openai::streamed(&ReplyScript::text(["Yes."]).usage(tokens, 1))
    });
    let mut world = World::new(script).await;
    world.config = format!("context_tokens = 16000\n{USERS}");
    // Of 12,000 tokens that the layers may take, 10,000 or 20,000.
    world.put("TOOLS.md", &"use it well\n".repeat(3_400));
    let hub = world.start();
    for said in ["One.", "Two.", "Three.", "/new", "Four."] {
        world.ask("ann", said).await;
    }
    hub.stop().await;
    let shown: Vec<_> = world.requests().iter().map(system).collect();
    let is_cut = |at: usize| shown[at].contains("[cut: the context has no room");
    assert!(!is_cut(0) && is_cut(1) && is_cut(2) && is_cut(3));
    assert_eq!(shown[1], shown[2], "byte for byte");
    let kept = |at: usize| shown[at].matches("use it well").count();
    assert_eq!(kept(0), 3_400);
    assert!((1_500..2_400).contains(&kept(1)), "{}", kept(1));
}

#[tokio::test]
async fn hub_28_history_goes_in_blocks_so_that_the_beginning_of_requests_stays_equal() {
    let world = World::new(Script::repeat(text(&["Yes."]))).await;
    let hub = world.start();
    for turn in 0..40 {
        world.ask("ann", &format!("Question {turn}.")).await;
    }
    hub.stop().await;
    let requests = world.requests();
    let past = |request: &Value| {
        let messages = request["messages"].as_array().unwrap();
        messages.iter().filter(|it| it["role"] != "system").count() - 1
    };
    let counts: Vec<usize> = requests.iter().map(past).collect();
    let expected = (0..40).map(|turn| match turn {
        0..=25 => 2 * turn,
        26..=39 => 24 + 2 * (turn - 26),
        _ => 0,
    });
    assert_eq!(counts, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_message_of_a_turn_is_sent_at_once_and_a_final_that_says_the_same_is_not() {
    let sends = |said: &str| calls(&[("a", "message", json!({"text": said}))]);
    let replies = [
        sends("I look."),
        text(&["Found."]),
        sends("Done."),
        text(&["Done."]),
        text(&["Bye."]),
    ];
    let world = World::new(replies).await;
    let hub = world.start();
    world.messenger.say("ann", "Look.");
    let seen = world.messenger.until("ann", 2).await;
    let shown: Vec<_> = seen.iter().map(|it| (it.kind, it.text.as_str())).collect();
    let expected = [
        (OutboxKind::Message, "I look."),
        (OutboxKind::Final, "Found."),
    ];
    assert_eq!(shown, expected);
    world.ask("ann", "Do.").await;
    world.ask("ann", "Bye.").await;
    hub.stop().await;
    let texts = world.messenger.texts("ann");
    assert_eq!(texts, ["I look.", "Found.", "Done.", "Bye."]);
}

#[tokio::test]
async fn messages_go_to_known_chats_alone_and_files_come_from_the_chats_directory_alone() {
    let batch = [
        ("a", "message", json!({"text": "Psst.", "chat": "wire:bob"})),
        (
            "b",
            "message",
            json!({"text": "Psst.", "chat": "wire:stranger"}),
        ),
        ("c", "message", json!({"files": ["../../../secret"]})),
        ("d", "message", json!({"files": ["link"]})),
        ("p", "message", json!({"files": ["pipe"]})),
        (
            "e",
            "message",
            json!({"text": "Here.", "files": ["note.txt"]}),
        ),
    ];
    let world = World::new([
        text(&["Hello."]),
        text(&["Hello."]),
        calls(&batch),
        text(&["Sent."]),
        calls(&[("f", "message", json!({"text": "Psst.", "chat": "wire:ann"}))]),
        text(&["No."]),
    ])
    .await;
    let hub = world.start();
    world.ask("ann", "Hello.").await;
    world.ask("bob", "Hello.").await;
    let chat = world.home.path().join("data/hub/chats/wire_ann");
    let secret = world.home.path().join("secret");
    fs::write(chat.join("note.txt"), "note").unwrap();
    fs::write(&secret, "key").unwrap();
    std::os::unix::fs::symlink(&secret, chat.join("link")).unwrap();
    let (owner, pipe) = (rustix::fs::Mode::RUSR, rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, chat.join("pipe"), pipe, owner, 0).unwrap();
    world.messenger.say("ann", "Send.");
    world.messenger.until("ann", 3).await;
    assert_eq!(world.messenger.texts("ann")[1..], ["Here.", "Sent."]);
    world.messenger.until("bob", 2).await;
    assert_eq!(world.messenger.texts("bob")[1..], ["Psst."]);
    world.ask("bob", "Write to ann.").await;
    hub.stop().await;
    let requests = world.requests();
    let messages = requests[3]["messages"].as_array().unwrap();
    let results = messages.iter().filter(|it| it["role"] == "tool");
    let results: Vec<String> = results.map(content).collect();
    assert!(results[1].contains("knows no chat"), "{results:?}");
    for refused in &results[2..5] {
        assert!(refused.contains("cannot be sent"), "{results:?}");
    }
    let refused = last_said(&requests[5]);
    assert!(refused.contains("only an owner"), "{refused}");
    assert_eq!(world.messenger.texts("ann").len(), 3);
}

#[tokio::test]
async fn spawned_work_goes_on_beside_the_conversation_and_reports_to_its_chat() {
    let script = Script::answering(|request| {
        let request = request.json();
        let said = last_said(&request);
        if said.contains("Count the stars") {
            let offers_spawn = tools(&request).iter().any(|it| it == "spawn");
            return text(&[if offers_spawn {
                "I may spawn."
            } else {
                "There are many."
            }]);
        }
        match said.contains("works as session") {
            true => text(&["It is being counted."]),
            false => calls(&[("a", "spawn", json!({"task": "Count the stars."}))]),
        }
    });
    let world = World::new(script).await;
    let hub = world.start();
    world.messenger.say("bob", "How many stars are there?");
    world.messenger.until("bob", 2).await;
    hub.stop().await;
    let mut texts = world.messenger.texts("bob");
    texts.sort();
    assert_eq!(texts, ["It is being counted.", "There are many."]);
}

async fn created(world: &World) -> (RunningHub, String) {
    let hub = world.start();
    world.messenger.say("ann", "Learn to make tea.");
    let seen = world.messenger.until("ann", 2).await;
    let mut notices = seen.into_iter().filter(|it| it.kind == OutboxKind::Notice);
    (hub, notices.next().unwrap().text)
}

#[tokio::test]
async fn a_skill_that_is_made_in_a_chat_is_off_until_the_owner_has_seen_it() {
    let tea = json!({"name": "tea", "description": "Makes tea.", "text": "Boil water."});
    let read = calls(&[("b", "read_skill", json!({"name": "tea"}))]);
    let replies: Vec<Response> = vec![
        calls(&[("a", "create_skill", tea)]),
        text(&["Written."]),
        read.clone(),
        text(&["Not yet."]),
        read,
        text(&["Now."]),
    ];
    let world = World::new(replies).await;
    let (hub, shown) = created(&world).await;
    assert!(shown.contains("Boil water."), "{shown}");
    let command = shown.rsplit('`').nth(1).unwrap().to_owned();
    assert!(command.starts_with("/skills enable tea "), "{command}");
    world.ask("ann", "Make tea.").await;
    let refused = world.ask("bob", &command).await;
    assert!(refused.contains("only an owner"), "{refused}");
    let listed = world.ask("ann", "/skills").await;
    assert!(listed.contains("`tea` (switched off"), "{listed}");
    let other = world.ask("ann", "/skills enable tea 00000000").await;
    assert!(other.contains("has changed"), "{other}");
    assert_eq!(world.ask("ann", &command).await, "`tea` is switched on.");
    world.ask("ann", "Make tea.").await;
    hub.stop().await;
    let requests = world.requests();
    assert!(!system(&requests[2]).contains("Makes tea"));
    assert!(last_said(&requests[3]).contains("no skill `tea`"));
    assert!(system(&requests[4]).contains("- tea: Makes tea."));
    assert!(last_said(&requests[5]).contains("Boil water."));
}

#[tokio::test]
async fn an_assistant_without_a_workspace_has_a_voice() {
    let world = World::new([text(&["Hello."])]).await;
    assert!(world.config.contains(USERS));
    let hub = world.start();
    world.ask("ann", "Hello.").await;
    hub.stop().await;
    let shown = system(&world.requests()[0]);
    assert!(
        shown.starts_with("You are Rondo, a helpful assistant in a chat."),
        "{shown}"
    );
}
