//! Saving and forgetting: where a memory goes, what a crash leaves, and processes that save at once.

use crate::support::{NOON, SECRET, Scene, new, options, texts};
use rondo_memory::{Memories, MemoryError, NewMemory, Origin, START_BYTES_MAX, Scope};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{fs, thread};

/// Tells a copy of this program where it is to save until it is killed.
const VICTIM: &str = "RONDO_MEMORY_VICTIM";

#[test]
fn each_scope_has_its_files_and_they_are_private_where_they_are_the_users() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    let memories = scene.memories();
    for (scope, text) in [
        (Scope::User, "tabs"),
        (Scope::Project, "make"),
        (Scope::Chat, "blue"),
    ] {
        let saved = memories.save(&new(scope, text)).unwrap();
        assert!(saved.is_new && saved.path.exists());
    }
    let comment = "<!-- rondo: saved 2026-03-01T12:00:00Z by user -->";
    assert_eq!(
        scene.read("data/memory/MEMORY.md"),
        format!("- tabs {comment}\n")
    );
    assert_eq!(
        scene.read("project/.rondo/memory/MEMORY.md"),
        format!("- make {comment}\n")
    );
    assert_eq!(
        scene.read("data/memory/chats/s-1/2026-03-01.md"),
        format!("- blue {comment}\n")
    );
    assert_eq!(texts(&memories), ["tabs", "make", "blue"]);
    for (private, mode) in [("data/memory", 0o700), ("data/memory/MEMORY.md", 0o600)] {
        let found = fs::metadata(scene.path(private))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(found & 0o777, mode, "{private}");
    }
}

#[test]
fn what_a_turn_with_text_from_outside_saves_is_not_what_every_session_begins_with() {
    let scene = Scene::new();
    let memories = scene.memories();
    let from_outside = Origin {
        from_outside: true,
        ..new(Scope::User, "").origin
    };
    let outside = NewMemory {
        origin: from_outside,
        ..new(Scope::User, "the page says so")
    };
    let saved = memories.save(&outside).unwrap();
    assert!(
        saved.path.ends_with("data/memory/2026-03-01.md"),
        "{saved:?}"
    );
    assert!(saved.memory.origin.from_outside);
    assert_eq!(memories.at_start(NOON).0, []);
}

#[test]
fn a_note_of_the_day_takes_what_memory_md_has_no_room_for() {
    let scene = Scene::new();
    let memories = scene.memories();
    let entry = "- tabs <!-- rondo: saved 2026-03-01T12:00:00Z by user -->\n";
    for (left, name) in [
        (entry.len(), "MEMORY.md"),
        (entry.len() - 1, "2026-03-01.md"),
    ] {
        let old = format!("- {}\n", "x".repeat(START_BYTES_MAX - left - 3));
        scene.write("data/memory/MEMORY.md", &old);
        let saved = memories.save(&new(Scope::User, "tabs")).unwrap();
        assert_eq!(saved.memory.file, name, "{left} bytes are left");
    }
}

#[test]
fn the_same_is_saved_once_and_so_is_a_repeated_call() {
    let scene = Scene::new();
    let memories = scene.memories();
    let by_call = |text: &str, call: &str| NewMemory {
        origin: Origin {
            call: Some(call.to_owned()),
            ..new(Scope::User, "").origin
        },
        ..new(Scope::User, text)
    };
    assert!(memories.save(&by_call("use  tabs", "aa")).unwrap().is_new);
    let before = scene.read("data/memory/MEMORY.md");
    assert!(!memories.save(&by_call("use tabs\n", "bb")).unwrap().is_new);
    // The user has edited it since.
    scene.write("data/memory/MEMORY.md", &before.replace("tabs", "spaces"));
    let again = memories.save(&by_call("use tabs", "aa")).unwrap();
    assert_eq!(
        (again.is_new, again.memory.text.as_str()),
        (false, "use  spaces")
    );
    assert_eq!(
        memories
            .saved_by(Scope::User, "aa")
            .unwrap()
            .unwrap()
            .memory,
        again.memory
    );
    assert!(memories.saved_by(Scope::User, "bb").unwrap().is_none());
}

#[test]
fn secrets_are_not_saved() {
    let scene = Scene::new();
    let memories = scene.memories();
    memories
        .save(&new(Scope::User, &format!("the key is {SECRET}.")))
        .unwrap();
    assert_eq!(texts(&memories), ["the key is [redacted]."]);
}

#[tokio::test]
async fn what_is_forgotten_is_in_no_file_and_not_in_the_index() {
    let scene = Scene::new();
    let memories = scene.memories();
    scene.write(
        "data/memory/MEMORY.md",
        "# Mine\n\n- keep this\n- the zebra\n  is striped\n- and this\n",
    );
    scene.write("data/memory/2026-01-01.md", "- the zebra\n  is striped\n");
    assert_eq!(memories.search("zebra", 5).await.unwrap().hits.len(), 1);
    let id = memories.list().unwrap().memories[1].id.clone();
    let memory = memories.find(&id[..6]).unwrap();
    assert!(memories.forget(&memory).unwrap());
    assert!(!memories.forget(&memory).unwrap(), "it is gone");
    assert_eq!(
        scene.read("data/memory/MEMORY.md"),
        "# Mine\n\n- keep this\n- and this\n"
    );
    assert_eq!(scene.read("data/memory/2026-01-01.md"), "");
    assert_eq!(memories.search("zebra", 5).await.unwrap().hits.len(), 0);
    drop(memories);
    for name in fs::read_dir(scene.path("cache")).unwrap() {
        let bytes = fs::read(name.unwrap().path()).unwrap();
        assert!(
            !bytes.windows(5).any(|it| it == b"zebra" || it == b"strip"),
            "a trace of it is left"
        );
    }
}

#[test]
fn an_id_is_found_by_a_prefix_that_is_long_enough_and_unique() {
    let scene = Scene::new();
    let memories = scene.memories();
    let lines: String = (0..600).map(|it| format!("- memory {it}\n")).collect();
    scene.write("data/memory/MEMORY.md", &lines);
    let id = memories.list().unwrap().memories[7].id.clone();
    assert_eq!(memories.find(&id.to_uppercase()).unwrap().text, "memory 7");
    assert!(matches!(
        memories.find(&id[..3]),
        Err(MemoryError::Unknown { .. })
    ));
    assert!(matches!(
        memories.find("no such id"),
        Err(MemoryError::Unknown { .. })
    ));
}

#[test]
fn processes_that_save_at_once_lose_nothing() {
    const WRITERS: usize = 6;
    const EACH: usize = 25;
    let scene = Scene::new();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            // Each has descriptors of its own, as a process has.
            let memories = scene.memories();
            scope.spawn(move || {
                for number in 0..EACH {
                    let text = format!("writer {writer} saves {number}");
                    assert!(memories.save(&new(Scope::User, &text)).unwrap().is_new);
                }
            });
        }
    });
    let mut found = texts(&scene.memories());
    found.sort();
    found.dedup();
    assert_eq!(found.len(), WRITERS * EACH);
}

/// Saves until it is killed, if it was started for that.
#[test]
fn victim() {
    let Some(home) = std::env::var_os(VICTIM).map(PathBuf::from) else {
        return;
    };
    let memories = Memories::new(options(&home));
    let first = memories.list().unwrap().memories.len();
    for number in first.. {
        let text = format!("line one of {number}\nline two of {number}");
        memories.save(&new(Scope::User, &text)).unwrap();
        println!("saved {number}");
    }
}

#[test]
fn a_process_that_is_killed_while_it_saves_loses_nothing_that_it_saved() {
    let scene = Scene::new();
    let home = scene.path("");
    for round in 0..4 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["saving::victim", "--exact", "--nocapture"])
            .env(VICTIM, &home)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let saved = lines
            .map(Result::unwrap)
            .filter(|line| line.starts_with("saved "));
        let saved: Vec<String> = saved.take(5 + 7 * round).collect();
        victim.kill().unwrap();
        victim.wait().unwrap();
        let found = texts(&scene.memories());
        for line in saved {
            let number = line.trim_start_matches("saved ");
            let text = format!("line one of {number}\nline two of {number}");
            assert!(found.contains(&text), "{number} was saved");
        }
        assert!(
            found.iter().all(|it| it.contains("\nline two of ")),
            "a part of one: {found:?}"
        );
        // Its lock is free, and what it left behind blocks nothing.
        assert!(
            scene
                .memories()
                .save(&new(
                    Scope::Project,
                    &format!("after {round}\nline two of it")
                ))
                .unwrap()
                .is_new
        );
    }
}
