//! A file in the user's editor, while others save to it.

use crate::support::{Scene, new, texts};
use rondo_memory::{MemoryError, Scope};
use std::fs;

#[test]
fn an_edit_and_what_is_saved_meanwhile_are_both_kept() {
    let scene = Scene::new();
    let memories = scene.memories();
    scene.write("data/memory/MEMORY.md", "- tabs\n");
    let editing = memories
        .begin_edit(Scope::User, None, &scene.path("copies"))
        .unwrap();
    memories.save(&new(Scope::User, "saved meanwhile")).unwrap();
    fs::write(editing.path(), "- spaces").unwrap();
    let copy = editing.path().to_owned();
    assert!(memories.finish_edit(editing).unwrap());
    assert_eq!(texts(&memories), ["spaces", "saved meanwhile"]);
    assert!(!copy.exists());
}

#[test]
fn an_edit_of_what_others_changed_overwrites_nothing_and_loses_nothing() {
    let scene = Scene::new();
    let memories = scene.memories();
    scene.write("data/memory/MEMORY.md", "- tabs\n- more\n");
    let editing = memories
        .begin_edit(Scope::User, None, &scene.path("copies"))
        .unwrap();
    scene.write("data/memory/MEMORY.md", "- theirs\n");
    fs::write(editing.path(), "- mine\n").unwrap();
    let Err(MemoryError::Changed { kept, .. }) = memories.finish_edit(editing) else {
        panic!("changed by another program");
    };
    assert_eq!(fs::read_to_string(kept).unwrap(), "- mine\n");
    assert_eq!(texts(&memories), ["theirs"]);
}

#[test]
fn a_new_file_is_made_by_an_edit_and_none_without_one() {
    let scene = Scene::new();
    let memories = scene.memories();
    let untouched = memories
        .begin_edit(Scope::Project, None, &scene.path("copies"))
        .unwrap();
    assert!(!memories.finish_edit(untouched).unwrap());
    assert!(!scene.path("project/.rondo").exists());
    let editing = memories
        .begin_edit(Scope::Project, Some("2026-01-01.md"), &scene.path("copies"))
        .unwrap();
    fs::write(editing.path(), "- new\n").unwrap();
    assert!(memories.finish_edit(editing).unwrap());
    assert_eq!(scene.read("project/.rondo/memory/2026-01-01.md"), "- new\n");
}
