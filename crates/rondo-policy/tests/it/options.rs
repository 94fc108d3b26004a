//! Every option of the programs that run without asking, one by one.

use rondo_policy::AllowedDirs;
use rondo_policy::analysis::{Judgement, judge};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// Lines `PROGRAM allowed`, `PROGRAM asked` and `PROGRAM words`, the options beneath.
const TABLE: &str = include_str!("options.txt");
/// Path outside of the allowed directories.
const OUTSIDE: &str = "../outside";

/// Options of a program, by its documentation.
#[derive(Default)]
struct Options {
    allowed: Vec<&'static str>,
    asked: Vec<&'static str>,
    /// Of the allowed, those that take the next word, which is not a file.
    words: Vec<&'static str>,
}

fn table() -> BTreeMap<&'static str, Options> {
    let mut programs: BTreeMap<&str, Options> = BTreeMap::new();
    let mut current = None;
    for line in TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(options) = line.strip_prefix("    ") {
            let (program, kind) = current.unwrap();
            let entry = programs.entry(program).or_default();
            let place = match kind {
                "allowed" => &mut entry.allowed,
                "asked" => &mut entry.asked,
                "words" => &mut entry.words,
                other => panic!("{other}"),
            };
            place.extend(options.split(' '));
        } else {
            current = line.rsplit_once(' ');
        }
    }
    programs
}

struct ProjectTree {
    _root: TempDir,
    dirs: AllowedDirs,
}

impl ProjectTree {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("README.md"), "x").unwrap();
        fs::write(root.path().join("outside"), "x").unwrap();
        let made = Command::new("git")
            .args(["init", "-q", "--template="])
            .current_dir(&project)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(made.success());
        let dirs = AllowedDirs::new(&project, &[]).unwrap();
        Self { _root: root, dirs }
    }

    fn is_read_only(&self, command: &str) -> bool {
        judge(command, &self.dirs) == Judgement::ReadOnly
    }

    /// Returns whether a command with an option runs without asking, in any of the ways in which it can be written.
    fn is_allowed(&self, program: &str, option: &str) -> bool {
        let forms = match option.starts_with("--") {
            true => [
                option.to_owned(),
                format!("{option} 1"),
                format!("{option}=1"),
            ],
            false => [
                option.to_owned(),
                format!("{option} 1"),
                format!("{option}1"),
            ],
        };
        let commands = forms.iter().flat_map(|form| match program {
            "grep" | "rg" => vec![format!("{program} {form} x README.md")],
            "git grep" => vec![format!("{program} --cached {form} x")],
            "sed" => vec![format!("sed {form} p README.md"), format!("sed {form}")],
            "awk" | "jq" => vec![
                format!("{program} {form} . README.md"),
                format!("{program} {form} 1"),
            ],
            "find" => vec![
                format!("find {form} ."),
                format!("find . {form}"),
                format!("find . {form} ';'"),
            ],
            "tr" => vec![format!("tr {form} a b")],
            "pwd" | "git status" | "git log" | "git diff" | "git show" => {
                vec![format!("{program} {form}")]
            }
            _ => vec![
                format!("{program} {form} README.md"),
                format!("{program} {form}"),
            ],
        });
        commands
            .into_iter()
            .any(|command| self.is_read_only(&command))
    }

    /// Returns whether the word after an option may be anything.
    fn takes_word(&self, program: &str, option: &str) -> bool {
        let (before, after) = match program {
            "grep" | "rg" => ("-e x", "README.md"),
            "git grep" => ("--cached -e x", ""),
            "awk" | "jq" => ("", "1"),
            "sed" => ("-e p", ""),
            "find" => (".", ""),
            _ => ("", ""),
        };
        self.is_read_only(&format!("{program} {before} {option} {OUTSIDE} {after}"))
    }
}

#[test]
fn every_option_in_the_table_is_judged_as_it_says() {
    let tree = ProjectTree::new();
    let mut wrong = Vec::new();
    for (program, options) in table() {
        for (listed, expected) in [(&options.allowed, true), (&options.asked, false)] {
            let other = listed
                .iter()
                .filter(|option| tree.is_allowed(program, option) != expected);
            wrong.extend(
                other.map(|option| format!("{program} {option}: allowed is {}", !expected)),
            );
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn only_the_options_that_the_table_names_take_a_word_that_is_not_looked_at() {
    let tree = ProjectTree::new();
    let mut wrong = Vec::new();
    for (program, options) in table() {
        // Their operands are not files.
        let texts = "basename dirname false id pwd seq sleep tr type which";
        let is_text = texts.split(' ').any(|name| name == program);
        for option in options.allowed.iter().filter(|_| !is_text) {
            let expected = options.words.contains(option);
            if tree.takes_word(program, option) != expected {
                wrong.push(format!("{program} {option}: takes a word is {}", !expected));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn an_option_that_is_not_in_the_table_is_asked_about() {
    let tree = ProjectTree::new();
    let letters = ('!'..='~')
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| format!("-{letter}"));
    let others = [
        "-?",
        "-@",
        "--",
        "--x",
        "--no-such-option",
        "-@x",
        "--all=",
        "--recursiv",
        "-\u{e9}",
    ];
    let tried: Vec<String> = letters.chain(others.map(str::to_owned)).collect();
    let mut wrong = Vec::new();
    for (program, options) in table() {
        let is_named = |option: &str| {
            let is_number =
                option.starts_with('-') && option[1..].bytes().all(|b| b.is_ascii_digit());
            // `--` ends the options, and `-5` stands for all numbers.
            option == "--"
                || options.allowed.contains(&option)
                || (is_number && options.allowed.contains(&"-5"))
        };
        let known = options.allowed.iter().map(|option| format!("{option}-x"));
        let unknown = tried
            .iter()
            .cloned()
            .chain(known.filter(|option| option.starts_with("--")));
        for option in unknown.filter(|option| !is_named(option)) {
            let is_long_form = options.allowed.contains(&option.trim_end_matches('='));
            if !is_long_form && tree.is_allowed(program, &option) {
                wrong.push(format!("{program} {option}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn a_value_behind_an_operand_may_be_an_operand_itself() {
    let tree = ProjectTree::new();
    for (command, is_read_only) in [
        ("awk -F : 1 README.md", true),
        ("awk 1 -F ../outside", false),
        ("awk '{print}' -v ../outside", false),
        ("head -n 5 README.md", true),
        ("head README.md -n 5", true),
        ("head README.md -n ../outside", false),
        ("grep x README.md -A 2", true),
        ("uniq README.md -f 1", false),
    ] {
        assert_eq!(tree.is_read_only(command), is_read_only, "{command}");
    }
}

/// Options in the help of the installed programs, and `true` for those that take a word.
fn helped(program: &str) -> BTreeMap<String, bool> {
    let (name, args) = match program.split_once(' ') {
        Some((git, command)) => (git, vec![command, "--git-completion-helper-all"]),
        None if program == "find" => ("find", vec!["-help"]),
        None if program == "pwd" => ("env", vec!["pwd", "--help"]),
        None => (program, vec!["--help"]),
    };
    let Ok(said) = Command::new(name).args(args).env("LC_ALL", "C").output() else {
        return BTreeMap::new();
    };
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut found = BTreeMap::new();
    for line in said.lines() {
        let is_list = name == "git" || name == "find";
        let head = line.trim_start().split("  ").next().unwrap_or_default();
        if !is_list && !head.starts_with('-') {
            continue;
        }
        let is_optional = head.contains("[=");
        let takes_word = !is_optional && (head.contains('=') || head.contains(" <"));
        let words = if is_list { line } else { head };
        for word in words.split([' ', ',', '|', '/', '[', ']']) {
            let option = word.split(['=', '<']).next().unwrap_or_default();
            if option.len() > 1 && option.starts_with('-') {
                *found.entry(option.to_owned()).or_insert(false) |= takes_word;
            }
        }
    }
    found
}

#[test]
fn an_option_of_an_installed_program_that_the_table_does_not_know_is_asked_about() {
    let tree = ProjectTree::new();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (program, options) in table() {
        for (option, takes_word) in helped(program) {
            seen += 1;
            let is_named = options.allowed.contains(&option.as_str());
            if !is_named && option != "--" && tree.is_allowed(program, &option) {
                wrong.push(format!(
                    "{program} {option}: is not in the table, and runs unasked"
                ));
            }
            // Else the word that is not looked at is a file.
            let is_prose = matches!(program, "find") || program.starts_with("git");
            if !is_prose
                && !takes_word
                && option.starts_with("--")
                && options.words.contains(&option.as_str())
            {
                wrong.push(format!("{program} {option}: takes no word"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(seen > 100, "only {seen} options were found");
}
