//! Commands that are run only by mistake: they are denied in every mode, unless the user lifts that.
//!
//! They are looked for in what a command says, also to other programs and if it is not understood. Whoever wants to
//! get past them can: they are a net below mistakes, not a fence.

use super::fit::{CommandDirectory, base};
use super::{Decision, Ruling};
use crate::analysis::{Analysis, is_wrapper};
use std::path::{Path, PathBuf};

/// A denial that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denial {
    /// Its id, by which the user lifts it.
    pub id: &'static str,
    /// Effect of the command.
    pub what: &'static str,
}

/// All of them.
pub const DENIALS: [Denial; 7] = [
    REMOVE_ROOT,
    REMOVE_HOME,
    RAW_DISK,
    FILE_SYSTEM,
    SHUT_DOWN,
    KILL_ALL,
    FORK_BOMB,
];

const REMOVE_ROOT: Denial = Denial {
    id: "remove-root",
    what: "it removes the root directory, or a directory of the system",
};
const REMOVE_HOME: Denial = Denial {
    id: "remove-home",
    what: "it removes the home directory",
};
const RAW_DISK: Denial = Denial {
    id: "raw-disk",
    what: "it writes to a disk below its file system",
};
const FILE_SYSTEM: Denial = Denial {
    id: "make-file-system",
    what: "it makes a new file system on a device",
};
const SHUT_DOWN: Denial = Denial {
    id: "shut-down",
    what: "it stops or restarts the machine",
};
const KILL_ALL: Denial = Denial {
    id: "kill-all",
    what: "it ends all processes of the user",
};
const FORK_BOMB: Denial = Denial {
    id: "fork-bomb",
    what: "it starts processes endlessly",
};

/// Directories without which the system, or all its users, are lost.
const SYSTEM_DIRS: [&str; 21] = [
    "/",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/usr/local",
    "/var",
];

/// Prefixes of the names of disks below `/dev`.
const DISKS: [&str; 15] = [
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "mapper/", "mem",
    "kmem", "port", "nbd",
];

/// The longest directory that is followed, in bytes; those that are protected are short.
const DIRECTORY_BYTES_MAX: usize = 256;
/// The most text that is looked through in a word, in bytes.
const NESTED_BYTES_MAX: usize = 512 << 10;

impl Denial {
    pub(super) fn ruling(&self) -> Ruling {
        Ruling {
            decision: Decision::Deny,
            rule: format!("{} (built in)", self.id),
            reason: self.what.to_owned(),
            holds_always: true,
            is_certain: true,
            yields_to_hiding: false,
        }
    }
}

/// Returns the first denial that a command falls under, but for those that are lifted.
pub(super) fn find(
    command: &str,
    analysis: &Analysis,
    place: &CommandDirectory<'_>,
    lifted: &[String],
) -> Option<Denial> {
    let mut look = DenialSearch {
        directory: place.directory.to_owned(),
        home: place.home,
        lifted,
        found: None,
    };
    if is_fork_bomb(command) {
        look.find(FORK_BOMB);
    }
    for file in analysis.files() {
        look.written_file(file);
    }
    for simple in analysis.written() {
        look.command(simple.words, simple.runs_others);
        if simple.runs_others {
            simple.words.iter().skip(1).for_each(|word| look.text(word));
        }
    }
    if analysis.is_unknown() {
        look.text(command);
    }
    if analysis.written().any(|simple| simple.runs_others) {
        analysis.inputs().iter().for_each(|input| look.text(input));
    }
    look.found
}

/// Looks at one command after the other.
struct DenialSearch<'a> {
    /// Directory of the command, as far as `cd` tells.
    directory: PathBuf,
    home: Option<&'a Path>,
    lifted: &'a [String],
    found: Option<Denial>,
}

impl DenialSearch<'_> {
    fn find(&mut self, denial: Denial) {
        if self.found.is_none() && !self.lifted.iter().any(|id| id == denial.id) {
            self.found = Some(denial);
        }
    }

    /// Looks at the words of a command, and if it runs others at those that may be a command in it.
    fn command(&mut self, words: &[String], runs_others: bool) {
        let ends = if runs_others { words.len() } else { 1 };
        for at in 0..ends.min(words.len()) {
            if let Some((program, rest)) = words.get(at..).and_then(<[String]>::split_first) {
                self.program(base(program), rest);
            }
        }
    }

    /// Looks at text that may be a program in any language, as if it were commands.
    fn text(&mut self, text: &str) {
        if text.len() > NESTED_BYTES_MAX {
            return;
        }
        let text = text.replace("${HOME}", "$HOME");
        for command in text.split([';', '|', '&', '\n', '(', ')', '{', '}', '`']) {
            let is_between = |c: char| c.is_whitespace() || "'\",[]\\".contains(c);
            let words: Vec<String> = command
                .split(is_between)
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect();
            let runs_others = words.first().is_some_and(|it| is_wrapper(it));
            self.command(&words, runs_others);
            let mut files = words.iter().skip_while(|word| !word.starts_with('>'));
            files
                .next()
                .into_iter()
                .chain(files.next())
                .for_each(|word| {
                    self.written_file(word.trim_start_matches('>'));
                });
        }
    }

    fn program(&mut self, program: &str, words: &[String]) {
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        match program {
            "cd" | "pushd" => self.enter(words),
            "rm" | "unlink" | "rmdir" | "srm" => self.removal(words),
            "find" => self.found_files(words),
            "dd" => {
                let outputs = words.iter().filter_map(|word| word.strip_prefix("of="));
                outputs.for_each(|file| self.written_file(file));
            }
            "tee" | "shred" | "blkdiscard" | "sponge" => {
                words.iter().for_each(|file| self.written_file(file));
            }
            "wipefs" if has(&["-a", "--all", "-af", "-fa"]) => {
                words.iter().for_each(|file| self.written_file(file));
            }
            "cp" | "mv" | "install" => {
                words
                    .last()
                    .into_iter()
                    .for_each(|file| self.written_file(file));
            }
            "shutdown" | "reboot" | "halt" | "poweroff" if !has(&["--help", "--version", "-c"]) => {
                self.find(SHUT_DOWN);
            }
            "init" | "telinit" if has(&["0", "6"]) => self.find(SHUT_DOWN),
            "systemctl" | "loginctl"
                if has(&["poweroff", "reboot", "halt", "kexec", "soft-reboot"]) =>
            {
                self.find(SHUT_DOWN);
            }
            "kill" if words.last().is_some_and(|it| it == "-1") && words.len() > 1 => {
                self.find(KILL_ALL);
            }
            _ if makes_file_system(program) && names_device(words) => self.find(FILE_SYSTEM),
            _ => {}
        }
    }

    fn enter(&mut self, words: &[String]) {
        let to = words.iter().find(|word| !word.starts_with('-'));
        let to = to.map_or("~", String::as_str);
        let directory = self.resolve(to);
        // Each further step would cost as much as all before.
        let fits = |it: &PathBuf| it.as_os_str().len() <= DIRECTORY_BYTES_MAX;
        if let Some(directory) = directory.filter(fits) {
            self.directory = directory;
        }
    }

    fn removal(&mut self, words: &[String]) {
        let ends = words.iter().position(|word| word == "--");
        let options = words.get(..ends.unwrap_or(words.len())).unwrap_or_default();
        let is_recursive = options.iter().any(|word| {
            let is_short = word.starts_with('-') && !word.starts_with("--");
            (is_short && word.contains(['r', 'R']))
                || "--recursive".starts_with(word.as_str()) && word.len() > 4
        });
        if is_recursive {
            words.iter().for_each(|word| self.removed(word));
        }
    }

    /// `find / -delete`, with nothing that says which files are meant.
    fn found_files(&mut self, words: &[String]) {
        const ALL_FILES: [&str; 10] = [
            "-delete",
            "-exec",
            "-execdir",
            "-depth",
            "-xdev",
            "-mount",
            "-mindepth",
            "-maxdepth",
            "-rf",
            "-type",
        ];
        let options = || words.iter().filter(|word| word.starts_with('-'));
        let removes =
            options().any(|it| it == "-delete") || words.iter().any(|it| base(it) == "rm");
        if removes && options().all(|it| ALL_FILES.contains(&it.as_str())) {
            let starts = words.iter().take_while(|word| !word.starts_with('-'));
            starts.for_each(|word| self.removed(word));
        }
    }

    fn removed(&mut self, word: &str) {
        if word.starts_with('-') {
            return;
        }
        // The whole content of a directory counts as the directory.
        let whole = word
            .strip_suffix('*')
            .filter(|rest| rest.is_empty() || rest.ends_with('/'));
        let Some(path) = self.resolve(whole.unwrap_or(word)) else {
            return;
        };
        if SYSTEM_DIRS.iter().any(|it| path == Path::new(it)) {
            self.find(REMOVE_ROOT);
        }
        // The parents of the home directory contain it.
        if self.home.is_some_and(|home| home.starts_with(&path))
            || path.starts_with("~") && path.components().count() == 1
        {
            self.find(REMOVE_HOME);
        }
    }

    fn written_file(&mut self, word: &str) {
        let Some(path) = self.resolve(word) else {
            return;
        };
        if path == Path::new("/proc/sysrq-trigger") {
            self.find(SHUT_DOWN);
        }
        let below = path.strip_prefix("/dev").ok().and_then(Path::to_str);
        if below.is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk))) {
            self.find(RAW_DISK);
        }
    }

    fn resolve(&self, word: &str) -> Option<PathBuf> {
        let place = CommandDirectory {
            directory: &self.directory,
            home: self.home,
        };
        place.resolve(word)
    }
}

fn makes_file_system(program: &str) -> bool {
    program == "mkfs"
        || program.starts_with("mkfs.")
        || ["mke2fs", "mkswap", "newfs", "mkntfs", "mkdosfs"].contains(&program)
}

fn names_device(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| word.starts_with("/dev/") || word.contains('$'))
}

/// Finds `name(){ name|name& };name`, however it is spaced and named.
fn is_fork_bomb(command: &str) -> bool {
    let text: String = command.chars().filter(|c| !c.is_whitespace()).collect();
    let text = text.strip_prefix("function").unwrap_or(&text);
    text.match_indices("(){").any(|(at, _)| {
        let name = text.get(..at).unwrap_or_default();
        let is_between = |c: char| ";&|({'\"".contains(c);
        let name = name.rsplit(is_between).next().unwrap_or_default();
        !name.is_empty() && text.contains(&format!("{name}|{name}"))
    })
}
