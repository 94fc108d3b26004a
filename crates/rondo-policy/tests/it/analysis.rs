use crate::commands::{NOT_READ_ONLY, READ_ONLY};
use proptest::prelude::*;
use rondo_policy::AllowedDirs;
use rondo_policy::analysis::{COMMAND_BYTES_MAX, Judgement, NESTING_MAX, TOKENS_MAX, judge};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// How long a judgment is waited for: no slow machine reaches it.
const PATIENCE: Duration = Duration::from_mins(10);

/// A project with a repository, next to something private.
struct ProjectTree {
    root: TempDir,
}

impl ProjectTree {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::create_dir(project.join("links")).unwrap();
        fs::create_dir(root.path().join("private")).unwrap();
        fs::write(root.path().join("private/key"), "secret").unwrap();
        fs::write(project.join("README.md"), "x").unwrap();
        fs::write(project.join("src/a.rs"), "x").unwrap();
        symlink("../../private", project.join("links/out")).unwrap();
        symlink("../README.md", project.join("links/in")).unwrap();
        symlink("/proc/self/cwd", project.join("links/own")).unwrap();
        symlink("/nonexistent/x", project.join("links/dangling")).unwrap();
        let made = Command::new("git")
            .args(["init", "-q"])
            .current_dir(&project)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(made.success());
        Self { root }
    }

    fn dirs(&self) -> AllowedDirs {
        AllowedDirs::new(&self.project(), &[]).unwrap()
    }

    fn project(&self) -> std::path::PathBuf {
        self.root.path().join("project")
    }
}

#[test]
fn what_only_looks_is_told() {
    let tree = ProjectTree::new();
    let asked: Vec<_> = READ_ONLY
        .iter()
        .map(|command| (command, judge(command, &tree.dirs())))
        .filter(|(_, judgement)| *judgement != Judgement::ReadOnly)
        .collect();
    assert_eq!(asked, []);
}

#[test]
fn what_may_do_more_is_never_taken_for_looking() {
    let tree = ProjectTree::new();
    assert!(NOT_READ_ONLY.len() >= 80);
    let taken: Vec<_> = NOT_READ_ONLY
        .iter()
        .filter(|command| judge(command, &tree.dirs()) == Judgement::ReadOnly)
        .collect();
    assert_eq!(taken, Vec::<&&str>::new());
}

/// The agent often is in the project itself, so that such a path leads inside for the agent; for
/// the command, which it is not yet, it may lead anywhere.
#[test]
fn a_path_that_is_another_in_each_process_is_asked_about_though_it_leads_inside_for_this_one() {
    let tree = ProjectTree::new();
    let here = std::env::current_dir().unwrap();
    let dirs = AllowedDirs::new(&tree.project(), std::slice::from_ref(&here)).unwrap();
    let plain = format!("cat {}", here.join("Cargo.toml").display());
    assert_eq!(judge(&plain, &dirs), Judgement::ReadOnly);
    let taken: Vec<_> = [
        "cat /proc/self/cwd/Cargo.toml",
        "cat /proc/thread-self/cwd/Cargo.toml",
        "cat < /proc/self/cwd/Cargo.toml",
        "cat links/own/Cargo.toml",
        "cat src/../links/own/Cargo.toml",
        "ls links/own/*",
        "cd /proc/self/cwd && cat Cargo.toml",
        "cd links/own && cat Cargo.toml",
    ]
    .into_iter()
    .filter(|command| judge(command, &dirs) == Judgement::ReadOnly)
    .collect();
    assert_eq!(taken, Vec::<&str>::new());
    for directory in ["/proc/self/cwd", "links/own"] {
        let moved = dirs.in_directory(Path::new(directory));
        assert!(moved.is_err(), "{directory}");
    }
}

/// Every file with its content.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            } else {
                let content = fs::read(&path).unwrap_or_default();
                found.insert(path, content);
            }
        }
    }
    found
}

#[test]
fn what_only_looks_changes_nothing_and_shows_nothing_from_outside() {
    let tree = ProjectTree::new();
    let before = snapshot(tree.root.path());
    for command in READ_ONLY {
        let out = Command::new("bash")
            .args(["-c", command])
            .current_dir(tree.project())
            .envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_PAGER", "cat")])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&out.stdout).into_owned();
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!printed.contains("secret"), "{command}");
        assert!(!errors.contains("syntax error"), "{command}: {errors}");
        assert_eq!(snapshot(tree.root.path()), before, "{command}");
    }
}

#[test]
fn effects_name_the_programs() {
    let tree = ProjectTree::new();
    let judged = |command: &str| match judge(command, &tree.dirs()) {
        Judgement::Effects { commands, .. } => commands,
        other => panic!("{command}: {other:?}"),
    };
    assert_eq!(judged("ls && /bin/rm x"), ["ls", "rm"]);
    assert!(judged("find . -exec r\"m\" {} +").contains(&"rm".to_owned()));
    assert!(judged("bash -c 'r\"\"m x; sudo y'").contains(&"rm".to_owned()));
    assert!(judged("echo 'rm x' | bash").contains(&"rm".to_owned()));
    assert!(judged("echo $(sudo x)").contains(&"sudo".to_owned()));
}

#[test]
fn length_and_nesting_are_bounded() {
    let tree = ProjectTree::new();
    let echo = |length: usize| format!("echo {}", "x".repeat(length - 5));
    for (length, fits) in [
        (COMMAND_BYTES_MAX - 1, true),
        (COMMAND_BYTES_MAX, true),
        (COMMAND_BYTES_MAX + 1, false),
    ] {
        let is_read_only = judge(&echo(length), &tree.dirs()) == Judgement::ReadOnly;
        assert_eq!(is_read_only, fits, "{length}");
    }
    for (words, fits) in [(TOKENS_MAX, true), (TOKENS_MAX + 1, false)] {
        let command = format!("ls{}", " a".repeat(words - 1));
        let is_read_only = judge(&command, &tree.dirs()) == Judgement::ReadOnly;
        assert_eq!(is_read_only, fits, "{words}");
    }
    for command in [
        format!("{}ls{}", "(".repeat(4000), ")".repeat(4000)),
        format!("{}ls{}", "( ".repeat(NESTING_MAX), ")".repeat(NESTING_MAX)),
        format!("{}ls{}", "echo $(".repeat(1000), ")".repeat(1000)),
        "if ls; then ".repeat(600),
        "{ ".repeat(2000),
        "[[ ( ".repeat(500),
        "`".repeat(4000),
        "<<a ".repeat(1000),
        "${a:-".repeat(1000),
        "while ".repeat(1000),
    ] {
        assert_ne!(judge(&command, &tree.dirs()), Judgement::ReadOnly);
    }
}

#[test]
fn a_repository_that_makes_git_run_programs_is_asked_about() {
    let tree = ProjectTree::new();
    let config = tree.project().join(".git/config");
    let usual = fs::read_to_string(&config).unwrap();
    assert_eq!(judge("git status", &tree.dirs()), Judgement::ReadOnly);
    fs::write(&config, format!("{usual}[core]\n\tfsmonitor = ./evil\n")).unwrap();
    assert_ne!(judge("git status", &tree.dirs()), Judgement::ReadOnly);
    fs::write(&config, usual).unwrap();
    fs::write(tree.project().join(".git/hooks/post-index-change"), "").unwrap();
    assert_ne!(judge("git status", &tree.dirs()), Judgement::ReadOnly);
}

/// Git continues to a repository around, or without `.git`, if it does not know what it found.
#[test]
fn a_repository_that_git_passes_over_hides_no_other() {
    let inside = |make: fn(&Path)| {
        let tree = ProjectTree::new();
        let sub = tree.project().join("sub");
        fs::create_dir(&sub).unwrap();
        make(&sub);
        let dirs = tree.dirs().in_directory(Path::new("sub")).unwrap();
        judge("git status", &dirs)
    };
    let bare = |at: &Path| {
        fs::create_dir_all(at.join("objects")).unwrap();
        fs::create_dir_all(at.join("refs")).unwrap();
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(at.join("config"), "[core]\n\tbare = false\n").unwrap();
    };
    assert_eq!(inside(|_| {}), Judgement::ReadOnly);
    let cases: [fn(&Path); 7] = [
        |at| {
            fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(at.join("commondir"), "elsewhere\n").unwrap();
        },
        |at| {
            symlink("refs/heads/main", at.join("HEAD")).unwrap();
            fs::create_dir(at.join("objects")).unwrap();
        },
        |at| {
            fs::create_dir(at.join(".git")).unwrap();
            fs::write(at.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
        },
        |at| fs::create_dir_all(at.join(".git/objects")).unwrap(),
        |at| fs::write(at.join(".git"), "gitdir: ../x\n").unwrap(),
        |at| symlink("../.git", at.join(".git")).unwrap(),
        |at| {
            fs::create_dir(at.join(".git")).unwrap();
            symlink("../../.git/objects", at.join(".git/objects")).unwrap();
        },
    ];
    for (index, case) in cases.into_iter().enumerate() {
        assert_ne!(inside(case), Judgement::ReadOnly, "{index}");
    }
    let tree = ProjectTree::new();
    let git = tree.project().join("sub/.git");
    bare(&git);
    let dirs = tree.dirs().in_directory(Path::new("sub")).unwrap();
    assert_eq!(judge("git status", &dirs), Judgement::ReadOnly);
    for (name, content) in [("HEAD", "ref: elsewhere"), ("HEAD", "")] {
        fs::write(git.join(name), content).unwrap();
        assert_ne!(judge("git status", &dirs), Judgement::ReadOnly, "{content}");
    }
    bare(&git);
    fs::create_dir(git.join("objects/info")).unwrap();
    fs::write(git.join("objects/info/alternates"), "/elsewhere").unwrap();
    assert_ne!(judge("git status", &dirs), Judgement::ReadOnly);
}

/// `git log -p --all` shows what it finds behind links in `refs` and `objects`.
#[test]
fn a_repository_with_links_in_it_is_asked_about() {
    let cases: [fn(&Path); 5] = [
        |git| symlink("/elsewhere/refs/heads/main", git.join("refs/heads/x")).unwrap(),
        |git| symlink("/elsewhere/refs", git.join("refs/elsewhere")).unwrap(),
        |git| symlink("/elsewhere/pack", git.join("objects/ab")).unwrap(),
        |git| symlink("/elsewhere/packed-refs", git.join("packed-refs")).unwrap(),
        |git| {
            let pipe = git.join("refs/heads/pipe");
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        },
    ];
    for (index, case) in cases.into_iter().enumerate() {
        let tree = ProjectTree::new();
        let log = "git log -p --all";
        assert_eq!(judge(log, &tree.dirs()), Judgement::ReadOnly);
        let hook = tree.project().join(".git/hooks/pre-commit");
        symlink("../../hook", hook).unwrap();
        assert_eq!(judge(log, &tree.dirs()), Judgement::ReadOnly);
        case(&tree.project().join(".git"));
        assert_ne!(judge(log, &tree.dirs()), Judgement::ReadOnly, "{index}");
    }
}

#[test]
fn a_link_that_is_named_like_the_input_is_still_a_link() {
    let tree = ProjectTree::new();
    assert_eq!(judge("cat -; ls < -", &tree.dirs()), Judgement::ReadOnly);
    symlink("../private/key", tree.project().join("-")).unwrap();
    for command in ["cat < -", "stat -", "ls -"] {
        assert_ne!(
            judge(command, &tree.dirs()),
            Judgement::ReadOnly,
            "{command}"
        );
    }
}

#[test]
fn a_repository_outside_is_asked_about() {
    let tree = ProjectTree::new();
    let inner = AllowedDirs::new(&tree.project().join("src"), &[]).unwrap();
    assert_ne!(judge("git log", &inner), Judgement::ReadOnly);
    let bare = tree.project().join("bare");
    let made = Command::new("git")
        .args(["init", "-q", "--bare"])
        .arg(&bare)
        .status();
    assert!(made.unwrap().success());
    let in_bare = tree.dirs().in_directory(Path::new("bare")).unwrap();
    assert_ne!(judge("git log", &in_bare), Judgement::ReadOnly);
}

#[test]
fn a_name_that_reads_as_an_option_is_never_matched() {
    let tree = ProjectTree::new();
    assert_eq!(judge("sort *", &tree.dirs()), Judgement::ReadOnly);
    fs::write(tree.project().join("-oREADME.md"), "").unwrap();
    assert_ne!(judge("sort *", &tree.dirs()), Judgement::ReadOnly);
    assert_eq!(judge("sort ./*", &tree.dirs()), Judgement::ReadOnly);
}

#[test]
fn further_directories_can_be_allowed() {
    let tree = ProjectTree::new();
    let private = tree.root.path().join("private");
    let dirs = AllowedDirs::new(&tree.project(), std::slice::from_ref(&private)).unwrap();
    assert_eq!(
        judge("cat ../private/key links/out/key", &dirs),
        Judgement::ReadOnly
    );
    let outside = tree.dirs().in_directory(&private).unwrap();
    assert_ne!(judge("ls", &outside), Judgement::ReadOnly);
}

/// A parser that was used before took all memory there is for the first of these.
#[test]
fn what_cannot_be_parsed_is_given_up_at_once() {
    let tree = ProjectTree::new();
    let long = |part: &str| part.repeat(COMMAND_BYTES_MAX / part.len());
    let nested = |open: &str, depth: usize, close: &str| {
        format!("{}ls{}", open.repeat(depth), close.repeat(depth))
    };
    let mut commands = vec![
        "<<$( (e ".to_owned(),
        "<<$( (e \n".to_owned(),
        "$(<<a (".to_owned(),
        nested("case x in x) ", 60, " ;; esac"),
        nested("case x in x) ", 60, " esac"),
        nested("( ", 60, ")"),
        nested("((", 60, "))"),
        nested("$((", 60, "))"),
        nested("${a:-", 60, "}"),
        nested("if ls; then ", 60, "; fi"),
        long("git log;"),
        long("ls *;"),
    ];
    let parts = [
        "<<a ",
        "<<$(",
        "$( (",
        "`",
        "$(",
        "${",
        "$((",
        "((",
        "(",
        "{ ",
        "[[ ( ",
        "if ",
        "for x in ",
        "case x in ",
        "x=(",
        "a[",
        "<(",
        "\"$(",
        "'",
        "$'",
        "<<-",
        "& ",
        "! ",
        "f() ",
        "coproc ",
        "*/",
        "{a,",
        "@(",
        "cd src;",
        "cat <<a\na\n",
    ];
    commands.extend(parts.map(long));
    let dirs = tree.dirs();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for command in commands {
            let judged = judge(&command, &dirs);
            let whole = rondo_policy::is_complete(&command);
            let _ = tx.send((command, judged, whole));
        }
    });
    let mut judged = 0;
    while let Ok((command, judgement, _)) = rx.recv_timeout(PATIENCE) {
        assert_ne!(judgement, Judgement::ReadOnly, "{command}");
        judged += 1;
    }
    assert_eq!(judged, 42);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_mutated_command_never_panics_and_never_hides_a_removal(
        which in 0..READ_ONLY.len() + NOT_READ_ONLY.len(),
        at in 0..200_usize,
        cut in 0..4_usize,
        insert in prop::sample::select(vec![
            "$(", ")", "`", "'", "\"", "\\", "${", "}", "<<E\n", "((", "))", ";", "&", "|", "\n",
            "#", "~", "{a,b}", "[[", "]]", "$'", "!", "time ", "if ", "fi", "case ", "*", "\u{e4}",
        ]),
    ) {
        let dir = std::env::temp_dir();
        let dirs = AllowedDirs::new(&dir, &[]).unwrap();
        let corpus: Vec<_> = READ_ONLY.iter().chain(NOT_READ_ONLY).collect();
        let chars: Vec<char> = corpus[which].chars().collect();
        let at = at.min(chars.len());
        let head: String = chars[..at].iter().collect();
        let tail: String = chars[(at + cut).min(chars.len())..].iter().collect();
        let mutated = format!("{head}{insert}{tail}");
        let judged = judge(&mutated, &dirs);
        let panicked = Judgement::Unknown { reason: "the parser failed".to_owned() };
        prop_assert_ne!(judged, panicked);
        let removal = judge(&format!("{mutated}\nrm -rf x\n"), &dirs);
        prop_assert_ne!(removal, Judgement::ReadOnly);
    }
}

/// Opening a pipe waits for a writer; the judgment runs before any timer of the command does.
#[test]
fn a_pipe_in_place_of_gits_files_is_asked_about_at_once() {
    for name in ["config", "index", "HEAD"] {
        let tree = ProjectTree::new();
        let path = tree.project().join(".git").join(name);
        let _ = fs::remove_file(&path);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let dirs = tree.dirs();
        let (tx, rx) = std::sync::mpsc::channel();
        std::thread::spawn(move || tx.send(judge("git status", &dirs)));
        let judged = rx.recv_timeout(PATIENCE);
        assert!(
            !matches!(judged, Ok(Judgement::ReadOnly)),
            "{name}: {judged:?}"
        );
        assert!(judged.is_ok(), "{name}");
    }
}
