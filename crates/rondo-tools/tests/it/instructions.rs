//! Instruction files of a repository.

use rondo_tools::{RepositoryInstructions, instruction_file, repository_instructions};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn repository() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap().join("repo");
    fs::create_dir_all(root.join("app/deep")).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    (scratch, root)
}

fn found(directory: &Path) -> Vec<(String, String)> {
    let files = repository_instructions(directory).files;
    let shown = |(path, text): (PathBuf, String)| (path.display().to_string(), text);
    files.into_iter().map(shown).collect()
}

fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(String, String)> {
    expected
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into()
}

#[test]
fn files_are_read_from_the_root_down_to_the_directory() {
    let (_scratch, root) = repository();
    fs::write(root.join("AGENTS.md"), "far").unwrap();
    fs::write(root.join("app/deep/AGENTS.md"), "near").unwrap();
    fs::write(root.join("app/CLAUDE.md"), "not read beside AGENTS.md").unwrap();
    fs::write(root.join("../AGENTS.md"), "above the root").unwrap();
    let expected = pairs([("AGENTS.md", "far"), ("app/deep/AGENTS.md", "near")]);
    assert_eq!(found(&root.join("app/deep")), expected);
    assert_eq!(found(&root.join("app")), expected[..1]);
    assert_eq!(repository_instructions(&root.join("app")).root, Some(root));
}

#[test]
fn other_names_count_where_there_is_no_agents_md() {
    let (_scratch, root) = repository();
    fs::write(root.join("app/GEMINI.md"), "g").unwrap();
    assert_eq!(found(&root.join("app")), pairs([("app/GEMINI.md", "g")]));
    fs::write(root.join("CLAUDE.md"), "c").unwrap();
    assert_eq!(found(&root.join("app")), pairs([("CLAUDE.md", "c")]));
}

#[test]
fn outside_of_a_repository_the_directory_has_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    fs::create_dir(&directory).unwrap();
    fs::write(scratch.path().join("AGENTS.md"), "above").unwrap();
    let nothing = RepositoryInstructions::default();
    assert_eq!(repository_instructions(&directory), nothing);
    fs::write(directory.join("AGENTS.md"), "own").unwrap();
    assert_eq!(found(&directory), pairs([("AGENTS.md", "own")]));
    assert_eq!(repository_instructions(&directory.join("gone")), nothing);
}

#[test]
fn a_link_out_of_the_repository_and_a_pipe_are_not_read() {
    let (scratch, root) = repository();
    let secret = scratch.path().join("secret");
    fs::write(&secret, "key").unwrap();
    symlink(&secret, root.join("AGENTS.md")).unwrap();
    symlink("../../../secret", root.join("app/deep/AGENTS.md")).unwrap();
    let pipe = root.join("app/AGENTS.md");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert_eq!(found(&root.join("app/deep")), []);
    assert_eq!(instruction_file(&pipe), None);
    fs::write(root.join("CLAUDE.md"), "inside").unwrap();
    fs::remove_file(root.join("app/AGENTS.md")).unwrap();
    symlink("../CLAUDE.md", root.join("app/AGENTS.md")).unwrap();
    assert_eq!(
        found(&root.join("app/deep")),
        pairs([("app/AGENTS.md", "inside")])
    );
}

#[test]
fn a_file_is_read_as_far_as_its_bound() {
    let (_scratch, root) = repository();
    for (length, read) in [(65_535, 65_535), (65_536, 65_536), (65_537, 65_536)] {
        fs::write(root.join("AGENTS.md"), vec![b'x'; length]).unwrap();
        assert_eq!(found(&root)[0].1.len(), read);
    }
}
