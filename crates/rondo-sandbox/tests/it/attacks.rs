//! Attempts to have Rondo change what it is not to change, or to leave something that others run.

use crate::place::{self, Place};
use rondo_sandbox::{Enforcement, SandboxMode, SandboxSpec, UndoneChange, confine};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A writable directory, beside which others are. Nothing is confined in these tests: the test itself does what a command
/// that is confined by less could do.
struct Attack {
    _place: tempfile::TempDir,
    root: PathBuf,
    enforcement: Enforcement,
}

impl Attack {
    fn all() -> Vec<Self> {
        let kinds = [Enforcement::Full, Enforcement::Partial];
        let possible = kinds.into_iter().filter(|it| place::is_enforced(*it));
        possible.map(Self::new).collect()
    }

    fn new(enforcement: Enforcement) -> Self {
        let place = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = place.path().canonicalize().unwrap();
        for name in ["work", "work/sub", "home"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        Self {
            _place: place,
            root,
            enforcement,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn write_program(&self, name: &str) {
        self.write(name, "#!/bin/sh\ntouch pwned\n");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn shell(&self, script: &str) {
        let done = Command::new("bash")
            .args(["-ec", &place::whole_words(script)])
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
    }

    /// Protects directories, does something, and returns what was refused.
    fn during(&self, roots: &[&str], work: impl FnOnce()) -> Vec<UndoneChange> {
        let roots = roots
            .iter()
            .map(|it| self.path(it))
            .collect::<Vec<PathBuf>>();
        let spec = SandboxSpec {
            enforcement: self.enforcement,
            ..SandboxSpec::new(SandboxMode::WorkspaceWrite, roots)
        };
        let mut protection = confine(&mut Command::new("/bin/true"), &spec).unwrap();
        work();
        protection.restore()
    }

    fn during_shell(&self, script: &str) -> Vec<UndoneChange> {
        self.during(&["work"], || self.shell(script))
    }

    /// Returns the paths that were refused, from the place of the test.
    fn refused(&self, undone: &[UndoneChange]) -> Vec<String> {
        let below = |it: &UndoneChange| it.path.strip_prefix(&self.root).unwrap().to_owned();
        let mut paths: Vec<String> = undone
            .iter()
            .map(|it| below(it).to_string_lossy().into_owned())
            .collect();
        paths.sort();
        paths
    }
}

#[test]
fn a_directory_that_a_link_took_the_place_of_leads_nowhere() {
    for attack in Attack::all() {
        attack.shell("git init -q work/sub");
        attack.write("home/.envrc", "mine");
        attack.write("home/.git/config", "mine");
        let undone = attack.during(&["work", "work/sub"], || {
            attack
                .shell("mv work/sub work/sub2; ln -s ../home work/sub; echo a > work/sub2/.envrc");
        });
        assert_eq!(attack.text("home/.envrc"), "mine");
        assert_eq!(attack.text("home/.git/config"), "mine");
        let beside = fs::read_dir(attack.path("home")).unwrap().count();
        assert_eq!(beside, 2, "{undone:?}");
        // What was made in the directory is refused where it is now.
        assert!(attack.has("work/sub2/.envrc.refused"), "{undone:?}");
    }
}

#[test]
fn a_directory_above_that_was_swapped_for_the_home_loses_no_file_there() {
    for attack in Attack::all() {
        attack.write("home/.bashrc", "mine");
        attack.during(&["work", "work/sub"], || {
            attack.shell("mv work was; ln -s home work");
        });
        assert_eq!(attack.text("home/.bashrc"), "mine");
        assert!(!attack.has("home/.bashrc.refused"));
    }
}

#[test]
fn links_that_change_while_names_are_refused_lead_nowhere() {
    for attack in Attack::all() {
        attack.shell("git init -q work/sub; mkdir home/hooks");
        attack.write("home/config", "mine");
        attack.write("home/hooks/pre-commit", "mine");
        let swap = "for i in $(seq 300); do mv -T work/sub/.git work/was; ln -s ../../home work/sub/.git; \
                    rm work/sub/.git; mv -T work/was work/sub/.git; done";
        let mut swapping = Command::new("bash");
        swapping.args(["-c", swap]).current_dir(&attack.root);
        // What was refused meanwhile is not there to be removed.
        swapping.stderr(std::process::Stdio::null());
        let mut swapping = swapping.spawn().unwrap();
        while swapping.try_wait().unwrap().is_none() {
            let _ = attack.during(&["work"], || {});
        }
        assert_eq!(attack.text("home/config"), "mine");
        assert_eq!(attack.text("home/hooks/pre-commit"), "mine");
        assert_eq!(fs::read_dir(attack.path("home")).unwrap().count(), 2);
    }
}

#[test]
fn a_repository_at_the_top_is_no_workspaces_settings() {
    for attack in Attack::all() {
        let script = "git init -q --bare b.git; mv b.git/{HEAD,objects,refs} work; rm -r b.git";
        let config = "[core]\nbare = false\nworktree = .\nfsmonitor = touch pwned\n";
        let undone = attack.during(&["work"], || {
            attack.shell(script);
            attack.write("work/config", config);
        });
        assert_eq!(attack.refused(&undone), ["work/config"]);
        assert!(attack.has("work/config.refused"));
    }
}

#[test]
fn each_shape_of_a_repository_that_runs_something_is_refused() {
    const EVIL: &str = "[core]\nrepositoryformatversion = 0\nfsmonitor = touch pwned\n";
    for attack in Attack::all() {
        attack.shell("git init -q work");
        let undone = attack.during(&["work"], || {
            attack.shell(
                "cd work; git init -q a; git init -q --bare b; git init -q --bare c/.bare; echo 'gitdir: ./.bare' > c/.git
                 git init -q --separate-git-dir=.git/objects/aa d
                 mkdir -p .git/modules; git init -q --bare .git/modules/m; mkdir -p .git/worktrees/w
                 cp .git/HEAD .git/worktrees/w; echo ../../../b > .git/worktrees/w/commondir",
            );
            for config in [
                "a/.git/config",
                "b/config",
                "c/.bare/config",
                ".git/objects/aa/config",
                ".git/modules/m/config",
            ] {
                attack.write(&format!("work/{config}"), EVIL);
            }
            attack.write_program("work/a/.git/hooks/pre-commit");
            attack.write("work/e/.git", "gitdir: ../../home/other\n");
            symlink("../../home", attack.path("work/sub/.git")).unwrap();
        });
        let expected = [
            "work/.git/modules/m/config",
            "work/.git/objects/aa/config",
            "work/.git/worktrees/w/commondir",
            "work/a/.git/config",
            "work/a/.git/hooks/pre-commit",
            "work/b/config",
            "work/c/.bare/config",
            "work/e/.git",
            "work/sub/.git",
        ];
        assert_eq!(attack.refused(&undone), expected);
        assert!(undone.iter().all(|it| it.is_restored), "{undone:?}");
        for path in expected {
            assert!(
                !attack.has(path) && attack.has(&format!("{path}.refused")),
                "{path}"
            );
        }
    }
}

#[test]
fn ordinary_work_with_repositories_stays() {
    for attack in Attack::all() {
        let git =
            "g() { git -c user.name=A -c user.email=a@b -c protocol.file.allow=always \"$@\"; }";
        attack.shell(&format!(
            "{git}; git init -q work; cd work; g commit -q --allow-empty -m a"
        ));
        let undone = attack.during_shell(&format!(
            "{git}; cd work; g clone -q . clone; g init -q --bare bare.git; g -C clone remote add o ../bare.git
             g -C clone push -q o HEAD:refs/heads/main; g -C clone checkout -q -b b; mkdir n; g -C n init -q
             g submodule add -q ./clone sub/m; g worktree add -q wt; g -C wt commit -q --allow-empty -m b
             echo a > a; g add a; g commit -qm a; mv clone moved; g -C moved status; rm -rf n"
        ));
        // Settings at the top are protected themselves, if nothing holds the command.
        let nested: Vec<_> = undone
            .iter()
            .filter(|it| !it.path.starts_with(attack.path("work/.git")))
            .collect();
        assert!(nested.is_empty(), "{undone:?}");
    }
}

#[test]
fn what_a_person_had_set_before_stays_and_what_is_added_does_not() {
    for attack in Attack::all() {
        attack.shell("git init -q work/mine; git -C work/mine config core.editor vim; git -C work/mine config alias.a log");
        attack.write_program("work/mine/.git/hooks/pre-commit");
        let undone = attack.during_shell("touch work/a; mv work/mine work/moved");
        assert_eq!(attack.refused(&undone), [""; 0]);
        attack.shell("mv work/moved work/mine");
        if attack.enforcement == Enforcement::Full {
            let undone = attack.during_shell("git -C work/mine config core.pager x");
            assert_eq!(attack.refused(&undone), ["work/mine/.git/config"]);
        }
    }
}

#[test]
fn the_sixty_fifth_repository_is_looked_at_too() {
    for attack in Attack::all() {
        attack.shell("for i in $(seq 100 169); do git init -q work/$i; done");
        let undone = attack.during_shell(
            "for i in $(seq 100 169); do git -C work/$i config core.fsmonitor x; done",
        );
        let configs = |it: &String| it.ends_with(".git/config");
        assert_eq!(
            attack
                .refused(&undone)
                .iter()
                .filter(|it| configs(it))
                .count(),
            70
        );
        assert!(undone.iter().all(|it| it.is_restored));
    }
}

#[test]
fn settings_of_rondo_further_down_are_refused_in_every_shape() {
    for attack in Attack::all() {
        attack.shell("mkdir -p work/mine/.rondo work/fixture/.rondo; git init -q work");
        attack.write("work/mine/.rondo/init.lua", "mine");
        attack.write("work/fixture/.rondo/config.toml", "yolo = true");
        let undone = attack.during_shell("touch work/mine/a; mkdir work/b; echo a > work/b/a");
        assert_eq!(attack.refused(&undone), [""; 0]);
        let undone = attack.during_shell(
            "cd work; mkdir -p sub/.rondo a/b deep/er/.Rondo; echo x > sub/.rondo/init.lua
             cp -r fixture/.rondo a/b; ln -s ../fixture/.rondo a/.rondo; echo x > deep/er/.Rondo/policy.toml
             git init -q clone; mkdir clone/.rondo; echo x > clone/.rondo/config.toml",
        );
        let expected = [
            "work/a/.rondo",
            "work/a/b/.rondo",
            "work/clone/.rondo",
            "work/deep/er/.Rondo",
            "work/sub/.rondo",
        ];
        assert_eq!(attack.refused(&undone), expected);
        for path in expected {
            assert!(!attack.has(path) && attack.has(&format!("{path}.refused")));
        }
        assert!(attack.has("work/mine/.rondo/init.lua"));
        if attack.enforcement == Enforcement::Full {
            let undone =
                attack.during_shell("cd work/mine/.rondo; echo x > init.lua; mkdir skills");
            let expected = ["work/mine/.rondo/init.lua", "work/mine/.rondo/skills"];
            assert_eq!(attack.refused(&undone), expected);
        }
    }
}

/// Adds a path to an index that `git` would refuse there.
const ADD_TO_INDEX: &str = r#"
import hashlib, struct, subprocess, sys
file, path = sys.argv[1], sys.argv[2].encode()
blob = bytes.fromhex(subprocess.run(['git', '-C', file.rsplit('/', 1)[0], 'hash-object', '-w', '--stdin'], input=b'evil', stdout=subprocess.PIPE, check=True).stdout.decode().strip())
index = open(file, 'rb').read()
version, count = struct.unpack('>II', index[4:12])
at, entries = 12, []
for _ in range(count):
    length = struct.unpack('>H', index[at + 60:at + 62])[0] & 0xfff
    end = at + (62 + length + 8) // 8 * 8
    entries.append((index[at + 62:at + 62 + length], index[at:end]))
    at = end
entry = struct.pack('>10I', 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 0) + blob + struct.pack('>H', len(path)) + path
entries.append((path, entry + bytes((62 + len(path) + 8) // 8 * 8 - len(entry))))
index = b'DIRC' + struct.pack('>II', 2, len(entries)) + b''.join(it[1] for it in sorted(entries))
open(file, 'wb').write(index + hashlib.sha1(index).digest())
"#;

#[test]
fn an_index_that_has_git_write_elsewhere_is_refused() {
    let commit = "git -c user.name=A -c user.email=a@b commit -q -m a";
    for attack in Attack::all() {
        attack.write("add.py", ADD_TO_INDEX);
        attack.shell(&format!(
            "git init -q work; cd work; echo a > a; git add a; {commit}; git worktree add -q sub/wt; git clone -q . mine"
        ));
        let undone = attack.during_shell(
            "cd work; echo b > b; git add b; git -C mine status; git init -q n; git -C n status",
        );
        assert_eq!(attack.refused(&undone), [""; 0]);
        let undone = attack.during_shell(
            "python3 add.py work/.git/index .git/hooks/post-checkout; python3 add.py work/mine/.git/index ../../home/x
             python3 add.py work/.git/worktrees/wt/index .GIT/config; git clone -q work/mine work/c
             python3 add.py work/c/.git/index /etc/x; printf 'aa\\t../../home/id\\0' > work/.git/MERGE_RR",
        );
        let expected = [
            "work/.git/MERGE_RR",
            "work/.git/index",
            "work/.git/worktrees/wt/index",
            "work/c/.git/index",
            "work/mine/.git/index",
        ];
        assert_eq!(attack.refused(&undone), expected);
        let reason = undone.iter().find(|it| it.path.ends_with("c/.git/index"));
        let reason = reason.and_then(|it| it.reason.as_deref());
        assert_eq!(reason, Some("it has `git` write to `/etc/x`"));
    }
}

#[test]
fn settings_of_a_fresh_clone_that_are_set_aside_say_what_a_person_has_to_do() {
    for attack in Attack::all() {
        attack.shell("git init -q work; git -C work -c user.name=A -c user.email=a@b commit -q --allow-empty -m a");
        let undone = attack.during_shell(
            "cd work; git clone -q . clone; git -C clone config core.hooksPath .husky/_",
        );
        assert_eq!(attack.refused(&undone), ["work/clone/.git/config"]);
        assert_eq!(
            undone.first().and_then(|it| it.reason.as_deref()),
            Some(
                "it sets `core.hookspath`; `git` fails there until a person has read the file and renamed it back"
            )
        );
    }
}

#[test]
fn a_link_in_a_repository_that_git_would_write_through_is_refused() {
    for attack in Attack::all() {
        attack.shell("git init -q work; git -C work -c user.name=A -c user.email=a@b commit -q --allow-empty -m a");
        attack.write("home/rc", "mine");
        attack.shell(
            "mkdir work/.git/mine; ln -s /mine work/.git/mine/link; ln -s /mine work/.git/link",
        );
        let undone = attack.during_shell(
            "cd work; for it in COMMIT_EDITMSG logs/HEAD; do ln -sf $OLDPWD/home/rc .git/$it; done
             git init -q --bare a; mkdir -p a/info; ln -s ../../../home a/info/refs; ln -s a/b a/index; mv .git/refs r; ln -s ../r .git/refs",
        );
        let expected = [
            "work/.git/COMMIT_EDITMSG",
            "work/.git/logs/HEAD",
            "work/.git/refs",
            "work/a/index",
            "work/a/info/refs",
        ];
        assert_eq!(attack.refused(&undone), expected);
        assert_eq!(attack.text("home/rc"), "mine");
    }
}

#[test]
fn a_file_named_git_is_looked_at_beside_one_that_is_written_otherwise() {
    for attack in Attack::all() {
        attack.shell("git init -q work; mkdir work/sub2");
        for (other, evil) in [("sub/.GIT", "sub/.git"), ("sub2/.gIt", "sub2/.git")] {
            let undone = attack.during(&["work"], || {
                attack.write(&format!("work/{evil}"), "gitdir: ../../home/other\n");
                attack.write(&format!("work/{other}"), "gitdir: ../.git\n");
            });
            assert_eq!(attack.refused(&undone), [format!("work/{evil}")]);
        }
    }
}

#[test]
fn an_interrupted_rebase_that_runs_something_is_refused() {
    for attack in Attack::all() {
        attack.shell("git init -q work; git init -q work/n");
        let undone = attack.during(&["work"], || {
            attack.write(
                "work/.git/rebase-merge/git-rebase-todo",
                "pick a\nexec touch pwned\n",
            );
            attack.write("work/n/.git/rebase-merge/git-rebase-todo", "pick a\n");
            attack.write("work/n/.git/sequencer/todo", "x touch pwned\n");
        });
        let expected = [
            "work/.git/rebase-merge/git-rebase-todo",
            "work/n/.git/sequencer/todo",
        ];
        assert_eq!(attack.refused(&undone), expected);
    }
}

#[test]
fn hooks_that_settings_name_are_protected_whether_they_exist_or_not() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::with_repository();
    let config = |value: &str| {
        let mut git = Command::new("git");
        git.args(["config", "core.hooksPath", value]);
        assert!(
            git.current_dir(&place.workspace)
                .status()
                .unwrap()
                .success()
        );
    };
    config("tools/hooks");
    fs::create_dir_all(place.workspace.join("tools/hooks")).unwrap();
    place.fails("echo a > tools/hooks/pre-commit");
    place.works("echo a > tools/b");
    symlink(
        "../../tools/check",
        place.workspace.join(".git/hooks/pre-push"),
    )
    .unwrap();
    symlink(
        "../../gone/check",
        place.workspace.join(".git/hooks/post-merge"),
    )
    .unwrap();
    fs::write(place.workspace.join("tools/check"), "mine").unwrap();
    place.fails("echo a > tools/check || rm tools/check");
    place.works("mkdir gone && echo a > gone/check");
    assert!(!place.workspace.join("gone").exists());
    config("githooks");
    place.works("mkdir githooks && echo a > githooks/pre-commit");
    assert!(!place.workspace.join("githooks").exists());
    assert!(place.workspace.join("githooks.refused").exists());
}

#[test]
fn what_settings_of_a_repository_include_or_run_of_the_tree_is_protected() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::with_repository();
    place.prepare(
        "mkdir -p tools/git src; printf '[include]\\npath = more\\n' > tools/git/config; : > tools/git/more
             echo mine | tee tools/clean.sh src/a src/check.py script
             git config include.path ../tools/git/config; git config includeIf.onbranch:x.path ../absent
             git config filter.x.clean './tools/clean.sh %f'; git config core.fsmonitor '!python3 \"src/check.py\"'
             git config alias.x '!./script'",
    );
    for script in [
        "echo > tools/git/config",
        "echo > tools/git/more",
        "rm tools/git/more",
        "mv tools/git tools/moved",
        "mv tools moved",
        "echo > tools/clean.sh",
        "mv tools/clean.sh tools/b",
        "echo > src/check.py",
    ] {
        place.fails(script);
    }
    place.works(
        "echo a > tools/git/other; echo a > src/a; echo a > script; mv src/a src/b; git status",
    );
    assert!(place.undone.borrow().is_empty());
    place.works("echo a > absent");
    assert!(!place.workspace.join("absent").exists());
}

#[test]
fn a_program_outside_that_listens_in_the_directories_is_not_reached() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::with_repository();
    std::fs::create_dir(place.workspace.join("tmp")).unwrap();
    let used = place.workspace.join("tmp/dev.sock");
    let listener = std::os::unix::net::UnixListener::bind(&used).unwrap();
    listener.set_nonblocking(true).unwrap();
    drop(std::os::unix::net::UnixListener::bind(place.workspace.join("stale.sock")).unwrap());
    let connect = |path: &str| {
        format!("python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{path}')\"")
    };
    place.fails(&connect("tmp/dev.sock"));
    place.fails(&format!("ln -s tmp/dev.sock l; {}", connect("l")));
    place.fails(&format!("mv tmp moved; {}", connect("moved/dev.sock")));
    assert!(listener.accept().is_err());
    // Of a program that has ended, and of one of the command's own.
    place.works(
        "rm stale.sock; python3 -c \"
import socket
s = socket.socket(socket.AF_UNIX); s.bind('own.sock'); s.listen()
socket.socket(socket.AF_UNIX).connect('own.sock')\"",
    );
}

#[test]
fn what_a_protected_link_leads_to_is_neither_changed_nor_moved_away() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::with_repository();
    place.prepare(
        "mkdir -p cfg/vscode deep/husky env docs; echo {} > cfg/vscode/tasks.json; echo mine | tee deep/husky/pre-commit env/rc
             ln -s cfg/vscode .vscode; ln -s deep/husky .husky; ln -s env/rc .envrc; ln -s absent/rondo .rondo; ln -s docs/a.md AGENTS.md
             mkdir -p far/away; echo mine > far/away/GEMINI.md; ln -s far near; ln -s near/away/GEMINI.md GEMINI.md
             ln -s b a; ln -s a b; ln -s a .cursor",
    );
    for script in [
        "mv cfg cfg2",
        "mv cfg/vscode cfg/other",
        "rm -r deep/husky",
        "mv deep moved",
        "mv env env2",
        "echo theirs > .vscode/tasks.json",
        "echo theirs > deep/husky/pre-commit",
        "echo theirs > env/rc",
        "mv far further",
        "echo theirs > far/away/GEMINI.md",
    ] {
        place.fails(script);
    }
    place.works("echo a > cfg/other; echo a > env/other; echo a > docs/b.md");
    assert!(place.undone.borrow().is_empty(), "{:?}", place.undone);
    place.works(
        "mkdir -p absent/rondo; echo theirs > absent/rondo/init.lua; echo theirs > docs/a.md",
    );
    place.works("rm near; mkdir -p near/away; echo theirs > near/away/GEMINI.md");
    for made in ["absent", "docs/a.md"] {
        assert!(!place.workspace.join(made).exists(), "{made}");
    }
    let read = std::fs::read_to_string(place.workspace.join("GEMINI.md"));
    assert_eq!(read.unwrap(), "mine\n");
}

#[test]
fn what_is_made_in_the_sandbox_stays_unless_it_runs_something() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::with_repository();
    place.works(
        "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
         git commit -q --allow-empty -m a && git clone -q . clone && git init -q --bare bare.git && git worktree add -q wt
         cd clone && git remote add o ../bare.git && git push -q o HEAD:refs/heads/main && git switch -q -c b
         cd ../wt && git commit -q --allow-empty -m b",
    );
    assert!(place.undone.borrow().is_empty(), "{:?}", place.undone);
    // It is there when the next command begins.
    place.fails("git -C clone config core.fsmonitor x || git -C bare.git config core.pager x");
    place.works("git -C clone status && git -C wt status && git -C bare.git log main");
    place.works("git init -q evil && git -C evil config alias.x '!x'");
    let named: Vec<PathBuf> = place
        .undone
        .borrow()
        .iter()
        .map(|it| it.path.clone())
        .collect();
    let named: Vec<&str> = named.iter().filter_map(|it| it.to_str()).collect();
    assert!(
        named.len() == 1 && named[0].ends_with("evil/.git/config"),
        "{named:?}"
    );
}

#[test]
fn two_commands_at_once_refuse_nothing_that_is_harmless_of_the_other() {
    for attack in Attack::all() {
        attack.shell("git init -q work");
        attack.write("work/AGENTS.md", "mine");
        let undone = attack.during(&["work"], || {
            let inner =
                attack.during_shell("git init -q work/a; mkdir work/b; echo x > work/.envrc");
            assert_eq!(attack.refused(&inner), ["work/.envrc"]);
            let inner =
                attack.during_shell("git clone -q work/a work/c; git -C work/c config user.name A");
            assert!(inner.is_empty(), "{inner:?}");
        });
        assert!(undone.is_empty(), "{undone:?}");
        assert!(attack.has("work/a/.git/config") && attack.has("work/c/.git/config"));
    }
}

#[test]
fn what_another_command_had_made_is_not_taken_for_what_was_there_before() {
    for attack in Attack::all() {
        attack.shell("git init -q work; mkdir work/ev; git init -q work/own; git -C work/own config core.editor vim");
        let begin = || {
            let spec = SandboxSpec {
                enforcement: attack.enforcement,
                ledger: Some(attack.path("ledger")),
                ..SandboxSpec::new(SandboxMode::WorkspaceWrite, [attack.path("work")])
            };
            confine(&mut Command::new("/bin/true"), &spec).unwrap()
        };
        let mut first = begin();
        attack.shell(
            "cd work; git -C ev init -q; git -C ev config core.fsmonitor x; mkdir sub/.rondo; echo x > sub/.rondo/init.lua
             mkdir .git/rebase-merge; echo 'exec x' > .git/rebase-merge/git-rebase-todo; echo 'gitdir: /x' > sub/.git",
        );
        let mut second = begin();
        let planted = [
            "work/.git/rebase-merge/git-rebase-todo",
            "work/ev/.git/config",
            "work/sub/.git",
            "work/sub/.rondo",
        ];
        assert_eq!(attack.refused(&first.restore()), planted);
        for path in planted {
            attack.shell(&format!("mv {path}.refused {path}"));
        }
        assert_eq!(attack.refused(&second.restore()), planted);
        assert_eq!(attack.refused(&begin().restore()), [""; 0]);
    }
}

/// Runs a test again as a user without privileges, from whom a mode takes a permission away.
fn as_ordinary_user(test: &str) -> bool {
    const MARK: &str = "RONDO_TEST_AS_USER";
    if !rustix::process::geteuid().is_root() || std::env::var_os(MARK).is_some() {
        return true;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let done = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", test, "--nocapture"])
        .env(MARK, place.path())
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    false
}

fn place_of_user() -> PathBuf {
    match std::env::var_os("RONDO_TEST_AS_USER") {
        Some(place) => Path::new(&place).to_owned(),
        None => env!("CARGO_TARGET_TMPDIR").into(),
    }
}

#[test]
fn modes_hide_nothing_from_the_search_and_keep_no_name() {
    if !as_ordinary_user("attacks::modes_hide_nothing_from_the_search_and_keep_no_name") {
        return;
    }
    if !place::is_enforced(Enforcement::Partial) {
        return;
    }
    for script in [
        "chmod 311 work/sub",
        "chmod 000 work/sub",
        "chmod 000 work/sub/.git",
        "chmod 500 work/sub/.git",
        "chmod 555 work/sub work/sub/.git work",
        "chmod 000 work/sub/.git work/sub",
    ] {
        let place = tempfile::TempDir::new_in(place_of_user()).unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("work/sub")).unwrap();
        let attack = Attack {
            _place: place,
            root,
            enforcement: Enforcement::Partial,
        };
        let undone = attack.during_shell(&format!(
            "git init -q work/sub; git -C work/sub config core.fsmonitor x; echo a > work/.envrc; {script}"
        ));
        let again = attack.during(&["work"], || {});
        attack.shell("chmod 755 work; chmod 755 work/sub; chmod 755 work/sub/.git");
        let expected = ["work/.envrc", "work/sub/.git/config"];
        assert_eq!(attack.refused(&undone), expected, "{script}: {undone:?}");
        assert!(
            undone.iter().all(|it| it.is_restored),
            "{script}: {undone:?}"
        );
        assert!(again.is_empty(), "{script}: {again:?}");
        assert!(attack.has("work/sub/.git/config.refused") && attack.has("work/.envrc.refused"));
    }
}
