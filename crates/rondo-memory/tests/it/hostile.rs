//! A project from others: links, pipes, huge files, and texts that pretend.

use crate::support::{NOON, Scene, new};
use rondo_memory::{FILE_BYTES_MAX, FILES_MAX, MemoryError, QUERY_BYTES_MAX, Scope};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_link_in_a_project_is_neither_read_nor_written() {
    let scene = Scene::new();
    scene.write("secret.md", "- the secret\n");
    let secret = scene.path("secret.md");
    for (link, target) in [
        ("project/.rondo/memory/MEMORY.md", secret.clone()),
        ("project/.rondo/memory", scene.path("elsewhere")),
        ("project/.rondo", scene.path("other")),
    ] {
        let _ = fs::remove_dir_all(scene.path("project"));
        let _ = fs::remove_file(scene.path("project/.rondo"));
        for folder in ["elsewhere", "other/memory"] {
            fs::create_dir_all(scene.path(folder)).unwrap();
            fs::copy(&secret, scene.path(folder).join("MEMORY.md")).unwrap();
        }
        fs::create_dir_all(scene.path(link).parent().unwrap()).unwrap();
        symlink(&target, scene.path(link)).unwrap();
        let memories = scene.memories();
        let refused = memories.save(&new(Scope::Project, "mine"));
        assert!(
            matches!(refused, Err(MemoryError::NotRegular { .. })),
            "{link}: {refused:?}"
        );
        let (files, problems) = memories.at_start(NOON);
        assert_eq!(
            (files.len(), problems.len()),
            (0, 1),
            "{link}: {problems:?}"
        );
        match memories.list() {
            Ok(listing) => assert!(
                listing.memories.is_empty() && listing.notes.len() == 1,
                "{link}"
            ),
            Err(err) => assert!(matches!(err, MemoryError::NotRegular { .. }), "{link}"),
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "- the secret\n");
    }
}

#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let scene = Scene::new();
    let folder = scene.path("project/.rondo/memory");
    fs::create_dir_all(&folder).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.join("MEMORY.md"))
        .status();
    assert!(made.unwrap().success());
    let memories = scene.memories();
    assert!(matches!(
        memories.save(&new(Scope::Project, "mine")),
        Err(MemoryError::NotRegular { .. })
    ));
    assert_eq!(memories.at_start(NOON).0, []);
    assert_eq!(memories.list().unwrap().notes.len(), 1);
}

#[test]
fn the_bound_on_a_file_is_exact() {
    let scene = Scene::new();
    let memories = scene.memories();
    let line = "- a memory of some length\n";
    for (bytes, count) in [
        (FILE_BYTES_MAX - 1, 1),
        (FILE_BYTES_MAX, 1),
        (FILE_BYTES_MAX + 1, 0),
    ] {
        let filler = "\n".repeat(bytes - line.len());
        scene.write("data/memory/2026-01-01.md", &format!("{line}{filler}"));
        let listing = memories.list().unwrap();
        assert_eq!(
            (listing.memories.len(), listing.notes.len()),
            (count, 1 - count),
            "{bytes}"
        );
    }
    scene.write(
        "data/memory/chats/s-1/2026-03-01.md",
        &"\n".repeat(FILE_BYTES_MAX - 10),
    );
    let full = memories.save(&new(Scope::Chat, "mine"));
    assert!(
        matches!(full, Err(MemoryError::TooLarge { .. })),
        "{full:?}"
    );
}

#[test]
fn the_bound_on_files_keeps_memory_md_and_the_latest_notes() {
    let scene = Scene::new();
    scene.write("data/memory/MEMORY.md", "- main\n");
    for number in 0..FILES_MAX - 2 {
        scene.write(&format!("data/memory/2020-{number:05}.md"), "");
    }
    let memories = scene.memories();
    for (name, is_bounded) in [("2019-01-01.md", false), ("2018-01-01.md", true)] {
        scene.write(&format!("data/memory/{name}"), "- oldest\n");
        let listing = memories.list().unwrap();
        assert_eq!(
            listing.notes.len(),
            usize::from(is_bounded),
            "{name}: {:?}",
            listing.notes
        );
        assert_eq!(listing.memories.len(), 2, "{name}");
    }
}

#[test]
fn names_cannot_leave_the_folder() {
    let scene = Scene::new();
    let memories = scene.memories();
    for name in [
        "../MEMORY.md",
        "/etc/passwd.md",
        "a/b.md",
        ".hidden.md",
        "MEMORY.txt",
        "",
        "a\n.md",
    ] {
        let path = memories.path(Scope::User, Some(name));
        assert!(matches!(path, Err(MemoryError::BadName { .. })), "{name:?}");
        assert!(
            memories
                .begin_edit(Scope::User, Some(name), &scene.path("copies"))
                .is_err(),
            "{name:?}"
        );
    }
    assert!(memories.path(Scope::User, Some("2026-03-01.md")).is_ok());
}

#[test]
fn a_session_with_a_hostile_id_keeps_to_the_folder_of_chats() {
    let scene = Scene::new();
    for id in ["../../../escape", "..", "a/b", "ä", &"x".repeat(500)] {
        let mut options = scene.options();
        options.session = Some(rondo_types::SessionId::new(id));
        let saved = rondo_memory::Memories::new(options)
            .save(&new(Scope::Chat, "blue"))
            .unwrap();
        let folder = saved.path.parent().unwrap();
        assert_eq!(
            folder.parent().unwrap(),
            scene.path("data/memory/chats"),
            "{id}"
        );
    }
}

#[tokio::test]
async fn the_bound_on_a_query_is_exact() {
    let memories = Scene::new().memories();
    for (bytes, is_within) in [
        (QUERY_BYTES_MAX - 1, true),
        (QUERY_BYTES_MAX, true),
        (QUERY_BYTES_MAX + 1, false),
    ] {
        let found = memories.search(&"q".repeat(bytes), 5).await;
        assert_eq!(found.is_ok(), is_within, "{bytes}");
    }
    assert!(matches!(
        memories.search(" ?!", 5).await,
        Err(MemoryError::EmptyQuery)
    ));
}

#[tokio::test]
async fn memories_of_other_projects_are_not_found() {
    let scene = Scene::new();
    scene
        .memories()
        .save(&new(Scope::Project, "the zebra"))
        .unwrap();
    assert_eq!(
        scene
            .memories()
            .search("zebra", 5)
            .await
            .unwrap()
            .hits
            .len(),
        1
    );
    let mut options = scene.options();
    options.project = Some(scene.path("other"));
    let other = rondo_memory::Memories::new(options);
    assert_eq!(
        other.search("zebra", 5).await.unwrap().hits.len(),
        0,
        "though the index knows it"
    );
}
