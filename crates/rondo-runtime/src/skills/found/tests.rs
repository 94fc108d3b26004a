//! Tests of which skills count, in the folders of a user and of a project.

use super::*;
use crate::env::Env;
use crate::notices::NoNotices;
use crate::table::Layer;
use std::fs;
use std::path::Path;

struct Folders {
    home: tempfile::TempDir,
    project: tempfile::TempDir,
}

impl Folders {
    fn new() -> Self {
        let folders = Self {
            home: tempfile::tempdir().unwrap(),
            project: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(folders.project.path().join(".git")).unwrap();
        folders
    }

    fn trust(&self) {
        let file = self.home.path().join("rondo/config.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let folder = self.project.path();
        fs::write(file, format!("trusted_folders = [{folder:?}]")).unwrap();
    }

    fn settings(&self, below: &str) -> Settings {
        let home = self.home.path();
        let rondo = home.join("rondo");
        let env = Env::of(&[
            ("HOME", home.to_str().unwrap()),
            ("RONDO_HOME", rondo.to_str().unwrap()),
        ]);
        let directory = self.project.path().join(below);
        fs::create_dir_all(&directory).unwrap();
        Settings::load(env, directory, Layer::default(), &NoNotices).unwrap()
    }

    fn find(&self, below: &str) -> Vec<(String, String, SkillSource)> {
        let found = Skills::find(&self.settings(below)).usable.into_iter();
        let found = found.map(|it| (it.name, it.description, it.source));
        found.collect()
    }
}

fn put(base: &Path, folder: &str, description: &str) {
    let name = Path::new(folder).file_name().unwrap().to_str().unwrap();
    put_text(
        base,
        folder,
        &format!("---\nname: {name}\ndescription: {description}\n---\nBody.\n"),
    );
}

fn put_text(base: &Path, folder: &str, text: &str) {
    let folder = base.join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

#[test]
fn skills_are_found_in_every_directory_that_other_programs_use() {
    let folders = Folders::new();
    let (home, project) = (folders.home.path(), folders.project.path());
    put(home, "rondo/skills/a", "own");
    put(home, ".config/agents/skills/b", "shared");
    put(home, ".agents/skills/c", "shared");
    put(home, ".claude/skills/d", "of another program");
    put(project, ".rondo/skills/e", "x");
    put(project, ".agents/skills/f", "x");
    put(project, "app/.claude/skills/g", "x");
    let found = folders.find("app/src");
    let names: Vec<_> = found.iter().map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g"]);
    let sources: Vec<_> = found.iter().map(|it| it.2.is_of_project()).collect();
    assert_eq!(sources, [false, false, false, false, true, true, true]);
}

#[test]
fn a_repository_replaces_a_skill_of_the_user_only_where_it_is_trusted() {
    let folders = Folders::new();
    put(folders.home.path(), ".claude/skills/deploy", "mine");
    put(folders.project.path(), ".claude/skills/deploy", "theirs");
    put(
        folders.project.path(),
        "app/.rondo/skills/deploy",
        "nearest",
    );
    let of = || {
        let found = folders.find("app");
        (found[0].1.clone(), found[0].2, found.len())
    };
    assert_eq!(of(), ("mine".to_owned(), SkillSource::User, 1));
    folders.trust();
    assert_eq!(of(), ("nearest".to_owned(), SkillSource::TrustedProject, 1));
    let refused = Skills::find(&folders.settings("app")).refused;
    assert_eq!(refused.len(), 2);
    assert!(refused[0].problem.contains("is used instead"));
}

#[test]
fn what_is_no_skill_says_why() {
    let folders = Folders::new();
    let home = folders.home.path();
    let long = "a".repeat(65);
    for (folder, text) in [
        ("a", "# No front matter\n"),
        ("b", "---\ndescription: x\n---\n"),
        ("c", "---\nname: c\n---\n"),
        ("d", "---\nname: other\ndescription: x\n---\n"),
        ("E", "---\nname: E\ndescription: x\n---\n"),
        ("f--f", "---\nname: f--f\ndescription: x\n---\n"),
        (&*long, &format!("---\nname: {long}\ndescription: x\n---\n")),
    ] {
        put_text(home, &format!(".claude/skills/{folder}"), text);
    }
    let found = Skills::find(&folders.settings(""));
    assert_eq!(found.usable, []);
    let problems: Vec<_> = found.refused.iter().map(|it| it.problem.as_str()).collect();
    let name = "its name must be up to 64 lower-case letters, digits and single hyphens";
    assert_eq!(
        problems,
        [
            name,
            "it does not begin with the line `---`",
            name,
            "it has no `name`",
            "it has no `description`",
            "its name `other` differs from the name of its directory, `d`",
            name,
        ]
    );
}

#[test]
fn the_bounds_of_a_name_and_a_description_hold() {
    let folders = Folders::new();
    for (letter, length) in [('a', 63), ('b', 64), ('c', 65)] {
        let name = letter.to_string().repeat(length);
        put(folders.home.path(), &format!(".claude/skills/{name}"), "x");
    }
    for length in [1023, 1024, 1025] {
        let description = "ä".repeat(length);
        put(
            folders.home.path(),
            &format!(".claude/skills/d{length}"),
            &description,
        );
    }
    let found = folders.find("");
    let of_names: Vec<_> = found.iter().take(2).map(|it| it.0.len()).collect();
    assert_eq!(of_names, [63, 64]);
    let of_texts: Vec<_> = found
        .iter()
        .skip(2)
        .map(|it| it.1.chars().count())
        .collect();
    assert_eq!(of_texts, [1023, 1024, 1024]);
}

#[test]
fn packages_that_were_installed_bring_no_skills() {
    let folders = Folders::new();
    put(
        folders.project.path(),
        "node_modules/p/.claude/skills/a",
        "x",
    );
    put(folders.project.path(), ".claude/skills/node_modules", "x");
    assert_eq!(folders.find("node_modules/p"), []);
    assert_eq!(folders.find(""), []);
}

#[test]
fn a_link_out_of_the_repository_is_not_followed() {
    let folders = Folders::new();
    let outside = tempfile::tempdir().unwrap();
    put(outside.path(), "a", "x");
    put(outside.path(), "skills/b", "x");
    let own = folders.project.path().join(".claude/skills");
    fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(outside.path().join("a"), own.join("a")).unwrap();
    let other = folders.project.path().join(".agents");
    std::os::unix::fs::symlink(outside.path(), other).unwrap();
    assert_eq!(folders.find(""), []);
}

#[test]
fn a_skill_that_only_the_user_may_call_is_not_listed_for_the_model() {
    let folders = Folders::new();
    let text = "---\nname: a\ndescription: x\ndisable-model-invocation: true\n---\nBody.\n";
    put_text(folders.home.path(), ".claude/skills/a", text);
    let found = Skills::find(&folders.settings(""));
    assert_eq!(found.listed(), []);
    let read = found.get("a").unwrap().read().unwrap();
    assert_eq!(read.to_string(), "Body.");
}
