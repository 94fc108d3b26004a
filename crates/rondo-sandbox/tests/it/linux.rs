//! Refusals of the kernel to a sandboxed command, and things that still work.

use crate::place::{self, Place};
use rondo_sandbox::{
    Enforcement, NetworkAccess, PROTECTED, SandboxMode, SandboxSpec, confine, probe,
};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn is_enforced() -> bool {
    place::is_enforced(Enforcement::Full)
}

fn workspace_write() -> Place {
    Place::new(SandboxMode::WorkspaceWrite)
}

#[test]
fn a_command_writes_its_workspace_and_a_private_tmp_and_nothing_else() {
    if !is_enforced() {
        return;
    }
    // A home directory of its own: that of the tests' user may hold the clone.
    let place = workspace_write().with_home("echo a > notes; mkdir -p .cargo/bin");
    place.works("echo a > made && mkdir -p b/c && mv made b/c && rm b/c/made");
    place.works(
        "echo a > /tmp/rondo-sandbox-mine && cat /tmp/rondo-sandbox-mine && echo a > /dev/shm/a",
    );
    assert!(!Path::new("/tmp/rondo-sandbox-mine").exists());
    place.works("cd && test -z \"$(ls)\" && echo a > rondo-sandbox-mine && mkdir -p .cache/a");
    let home = place.home.clone().unwrap();
    assert!(home.join("notes").exists() && !home.join("rondo-sandbox-mine").exists());
    place.works("test -d ~/.cargo/bin");
    place.fails("echo a > ~/.cargo/bin/rondo-sandbox-mine");
    for script in [
        "echo a > $OUTSIDE/made",
        "echo a >> $OUTSIDE/.ssh/id",
        "rm $OUTSIDE/.ssh/id",
        "echo a > /usr/rondo-sandbox-made",
        "mv $PWD/../outside ./taken",
        "ln $OUTSIDE/.ssh/id key && cat key",
        "ln -s $OUTSIDE/made link && echo a > link",
        "chmod 777 $OUTSIDE/.ssh/id",
        "touch -d 1999-01-01 $OUTSIDE/.ssh/id",
        "chown $(id -u) $OUTSIDE/.ssh/id",
        "python3 -c 'import os; os.setxattr(os.environ[\"OUTSIDE\"], \"user.a\", b\"a\")'",
        "chmod 777 /usr/bin/env",
        "chmod 777 /etc",
    ] {
        place.fails(script);
    }
    assert!(!place.outside.join("made").exists());
}

#[test]
fn a_key_is_not_read_whatever_leads_to_it() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    for script in [
        "cat $OUTSIDE/.ssh/id",
        "ls $OUTSIDE/.ssh",
        "cat ~/.ssh/*",
        "ln -s $OUTSIDE/.ssh here; cat here/id",
        "cat /proc/$PPID/environ",
        "cat /proc/$PPID/root$OUTSIDE/.ssh/id",
        "cat /proc/1/environ",
    ] {
        place.fails(script);
    }
}

#[test]
fn a_command_that_may_only_read_writes_nothing_in_its_workspace() {
    if !is_enforced() {
        return;
    }
    let place = Place::new(SandboxMode::ReadOnly);
    fs::write(place.workspace.join("a"), "text").unwrap();
    assert_eq!(place.works("cat a"), "text");
    for script in [
        "echo b > a",
        "rm a",
        "touch b",
        "mkdir b",
        "mv a b",
        "ln -s a b",
        ": > a",
    ] {
        place.fails(script);
    }
    place.works("echo a > /dev/null; echo a > /dev/shm/a");
}

#[test]
fn what_others_run_is_never_written_and_not_moved_away() {
    if !is_enforced() {
        return;
    }
    let place = Place::with_repository();
    for name in ["AGENTS.md", ".envrc", ".mcp.json"] {
        fs::write(place.workspace.join(name), "mine").unwrap();
    }
    fs::create_dir(place.workspace.join(".rondo")).unwrap();
    for script in [
        "echo a > .git/hooks/pre-commit",
        "echo a >> .git/config",
        "git config core.fsmonitor x",
        "mv .git moved",
        "mv .git/hooks moved",
        "rm -rf .git/hooks",
        "mv .git moved; mkdir -p .git/hooks && echo a > .git/hooks/pre-commit",
        "echo a > AGENTS.md",
        "mv AGENTS.md b",
        "rm -f .envrc",
        "echo a > .rondo/policy.toml",
        "rmdir .rondo",
        "ln -f /etc/hostname .mcp.json",
        "umount .git/hooks",
        "unshare -Ur umount .git/hooks",
        "python3 -c \"open('.git/../.git/config', 'a').write('x')\"",
        "ln -s .git g; echo a > g/hooks/pre-commit",
    ] {
        place.fails(script);
    }
    let kept = |name: &&&str| place.workspace.join(name).exists();
    assert!(PROTECTED.iter().filter(kept).count() >= 7);
    assert_eq!(
        fs::read_to_string(place.workspace.join("AGENTS.md")).unwrap(),
        "mine"
    );
}

#[test]
fn what_is_protected_and_does_not_exist_is_not_there_afterwards() {
    if !is_enforced() {
        return;
    }
    let place = Place::with_repository();
    fs::write(place.workspace.join("CLAUDE.md"), "mine").unwrap();
    std::os::unix::fs::symlink("CLAUDE.md", place.workspace.join("AGENTS.md")).unwrap();
    place.works(
        "echo a > .envrc; mkdir -p .vscode .husky && echo a > .vscode/tasks.json; ln -s /bin/sh .mcp.json
         git init -q sub && echo a > sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit; echo a > .git/commondir
         rm AGENTS.md && echo a > AGENTS.md",
    );
    let restored = place
        .undone
        .borrow()
        .iter()
        .filter(|it| it.is_restored)
        .count();
    assert_eq!(restored, 7, "{:?}", place.undone);
    for name in [
        ".envrc",
        ".vscode",
        ".husky",
        ".mcp.json",
        "sub/.git/hooks/pre-commit",
        ".git/commondir",
    ] {
        assert!(!place.workspace.join(name).exists(), "{name}");
        assert!(
            place
                .workspace
                .join(format!("{name}.refused"))
                .symlink_metadata()
                .is_ok(),
            "{name}"
        );
    }
    let instructions = fs::read_to_string(place.workspace.join("AGENTS.md")).unwrap();
    assert_eq!(instructions, "mine");
    // What it leads to is as much the instructions as the link is.
    place.fails("echo a > CLAUDE.md || mv CLAUDE.md b");
}

#[test]
fn a_repository_further_down_is_protected_as_the_one_at_the_top_is() {
    if !is_enforced() {
        return;
    }
    let place = Place::with_repository();
    let made = Command::new("git")
        .args(["init", "-q", "a/sub"])
        .current_dir(&place.workspace)
        .status();
    assert!(made.unwrap().success());
    for script in [
        "echo a > a/sub/.git/hooks/pre-commit",
        "git -C a/sub config core.fsmonitor x",
        "mv a/sub/.git moved",
    ] {
        place.fails(script);
    }
    place.works(
        "cd a/sub && echo a > a && git add a && git -c user.name=A -c user.email=a@b commit -qm a",
    );
    // Its directory can be moved, and is found where it is then.
    place.works("mv a b && mkdir -p a/sub/.git && echo a > a/sub/.git/config");
    assert!(!place.workspace.join("a/sub/.git/config").exists());
    assert!(place.workspace.join("b/sub/.git/config").exists());
    place.works("mv b c && echo ../../evil > c/sub/.git/commondir");
    assert!(!place.workspace.join("c/sub/.git/commondir").exists());
}

#[test]
fn git_is_led_to_no_other_configuration() {
    if !is_enforced() {
        return;
    }
    let place = Place::with_repository();
    place.works(
        "cp -r .git evil && git config -f evil/config core.fsmonitor 'touch pwned' && echo ../evil > .git/commondir",
    );
    assert!(!place.workspace.join(".git/commondir").exists());
    let status = Command::new("git")
        .arg("status")
        .current_dir(&place.workspace)
        .output();
    assert!(status.unwrap().status.success());
    assert!(!place.workspace.join("pwned").exists());
}

#[test]
fn work_goes_on_in_a_linked_worktree_and_its_repository_is_protected() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    let main = place.outside.join("main");
    let setup = "git init -q -b main $OUTSIDE/main && cd $OUTSIDE/main && git -c user.name=A -c user.email=a@b \
                 commit -q --allow-empty -m a && git worktree add -q --force $WORKSPACE";
    let done = Command::new("bash")
        .args(["-ec", &place::whole_words(setup)])
        .env("OUTSIDE", &place.outside)
        .env("WORKSPACE", &place.workspace)
        .status();
    assert!(done.unwrap().success());
    place.works("git status && echo a > a && git add a && git -c user.name=A -c user.email=a@b commit -qm a");
    for script in [
        "echo a > $OUTSIDE/main/.git/hooks/pre-commit",
        "git config core.fsmonitor x",
        "mv $OUTSIDE/main/.git $OUTSIDE/main/moved",
        "echo evil > $OUTSIDE/main/.git/worktrees/workspace/commondir",
        "mv $OUTSIDE/main/.git/worktrees/workspace $OUTSIDE/main/.git/moved",
        "echo a > .git",
    ] {
        place.fails(script);
    }
    place.makes_nothing("echo a > $OUTSIDE/main/a", &main.join("a"));
    place.works("git worktree add -q other && git -C other status");
    assert!(place.undone.borrow().is_empty(), "{:?}", place.undone);
    place.works("echo evil > $OUTSIDE/main/.git/commondir");
    assert!(!main.join(".git/commondir").exists(), "{:?}", place.undone);
}

#[test]
fn no_socket_leads_out() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    let shared = TempDir::new().unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let path = shared.path().join("socket");
    let _named = UnixListener::bind(&path).unwrap();
    let name = format!("rondo-sandbox-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let port = tcp.local_addr().unwrap().port();
    place.refused(&format!(
        "socket.create_connection(('127.0.0.1', {port}), 2)"
    ));
    place.refused("socket.create_connection(('192.0.2.1', 80), 2)");
    place.refused(&format!(
        "socket.socket(socket.AF_UNIX).connect('{}')",
        path.display()
    ));
    place.refused(&format!(
        "socket.socket(socket.AF_UNIX).connect('\\\\0{name}')"
    ));
    place.refused("socket.socket(40, socket.SOCK_STREAM)");
    let port = udp.local_addr().unwrap().port();
    place.works(&format!("echo x > /dev/udp/127.0.0.1/{port}; :"));
    assert!(udp.recv(&mut [0]).is_err());
}

#[test]
fn what_reaches_past_files_is_refused() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    for call in [
        "call(425, 8, 0)",
        "call(101, 16, os.getppid(), 0, 0)",
        "call(165, b'none', b'/tmp', b'tmpfs', 0, 0)",
        "call(272, 0x10000000)",
        "call(56, 0x10000000 | 17, 0, 0, 0, 0)",
        "call(435, 0, 0)",
        "call(310, os.getppid(), 0, 0, 0, 0, 0)",
        "call(321, 0, 0, 0)",
        "call(250, 0, 0)",
        "os.kill(os.getppid(), 0)",
        "os.setuid(1)",
        "os.chroot('.')",
    ] {
        if cfg!(target_arch = "x86_64") || call.starts_with("os.") {
            place.refused(call);
        }
    }
    place.fails("sudo -n true || su -c true nobody");
}

/// The C library takes the older call if this one is not there, and gives up if it is refused.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_newer_clone_is_not_there_and_each_call_of_x32_is_refused() {
    if !is_enforced() {
        return;
    }
    let program = "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n\
        for number in (435, 0x40000000 | 39, 0x40000000 | 521):\n    \
        print(libc.syscall(number, 0, 0), errno.errorcode[ctypes.get_errno()])";
    let shown = workspace_write().works(&format!("python3 -c \"{program}\""));
    assert_eq!(shown, "-1 ENOSYS\n-1 EPERM\n-1 EPERM\n");
}

#[test]
fn a_race_of_links_writes_nothing_that_is_protected() {
    if !is_enforced() {
        return;
    }
    let place = Place::with_repository();
    let output = place.run(
        "mkdir d; (for i in $(seq 200); do ln -sfn .git/hooks d/l; ln -sfn /tmp d/l; done) & \
         for i in $(seq 200); do echo a > d/l/pre-commit; done 2> /dev/null; wait",
    );
    assert!(output.status.code().is_some());
    assert!(!place.workspace.join(".git/hooks/pre-commit").exists());
}

#[test]
fn work_goes_on_inside() {
    if !is_enforced() {
        return;
    }
    let place = Place::at(TempDir::new().unwrap(), SandboxMode::WorkspaceWrite);
    place.make_repository();
    place.works("touch /tmp/a && cd /tmp && ls && test ! -e $OUTSIDE");
    place.works("echo a > a && git add a && git -c user.name=A -c user.email=a@b commit -qm a && git branch b && git gc -q");
    place.works("printf 'import unittest\\nclass T(unittest.TestCase):\\n def test_a(self): self.assertTrue(1)\\n' > test_a.py && python3 -m unittest -q");
    place.works("python3 -c 'import multiprocessing as m; m.Lock(); print(1)'");
    place.works("python3 -c \"import socket; s=socket.create_server(('127.0.0.1',0)); socket.create_connection(s.getsockname())\"");
    place.works(
        "python3 -c 'import os, pty; m, s = pty.openpty(); os.write(m, b\"x\"); os.ttyname(s)'",
    );
    place.works("chmod 755 test_a.py && touch -d 1999-01-01 test_a.py");
    place.works("ls | sort | xargs cat > /dev/null; kill -0 $$; (sleep 0.01 & wait)");
    place.works("mkdir -p c/src && cd c && printf '[package]\\nname=\"c\"\\nversion=\"0.1.0\"\\nedition=\"2021\"\\n[workspace]\\n' > Cargo.toml && echo 'fn main() {}' > src/main.rs && CARGO_TARGET_DIR=target cargo build -q --offline && target/debug/c");
}

#[test]
fn tests_of_python_and_builds_of_go_work_inside() {
    if !is_enforced() {
        return;
    }
    let place = Place::at(TempDir::new().unwrap(), SandboxMode::WorkspaceWrite);
    // The system's own Python, which has the package of the system.
    place.works("printf 'def test_a(tmp_path):\\n    (tmp_path / \"a\").write_text(\"b\")\\n' > test_b.py && /usr/bin/python3 -m pytest -q test_b.py && test -d .pytest_cache");
    place.works("mkdir g && cd g && printf 'module g\\n' > go.mod && printf 'package main\\nimport \"fmt\"\\nfunc main() { fmt.Println(1) }\\n' > main.go && go build -o g . && ./g && go vet ./...");
}

#[test]
fn mounts_are_not_changed_by_the_call_that_the_c_library_has_no_name_for() {
    if !is_enforced() {
        return;
    }
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let open_tree_attr = "import ctypes; c = ctypes.CDLL(None, use_errno=True); \
            print(c.syscall(467, -100, b'/', 0, b'\\x00' * 32, 32), ctypes.get_errno())";
        let told = Place::new(mode).works(&format!("python3 -c \"{open_tree_attr}\""));
        assert_eq!(told, "-1 1\n", "EPERM");
    }
}

#[test]
fn there_are_no_sockets_where_none_are_needed() {
    if !is_enforced() {
        return;
    }
    let mut place = Place::new(SandboxMode::ReadOnly);
    place.network = NetworkAccess::Nothing;
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    place.refused(&format!(
        "socket.create_connection(('127.0.0.1', {port}), 2)"
    ));
    for family in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"] {
        place.refused(&format!(
            "socket.socket(socket.{family}, socket.SOCK_DGRAM)"
        ));
    }
    place.works("ls | sort; git --version; python3 -c 'import socket; socket.socketpair()'");
}

#[test]
fn a_command_that_only_reads_writes_to_no_pipe_of_the_directories() {
    if !is_enforced() {
        return;
    }
    for shared in [None, Some("/tmp")] {
        let mut place = match shared {
            Some(shared) => Place::at(TempDir::new_in(shared).unwrap(), SandboxMode::ReadOnly),
            None => Place::new(SandboxMode::ReadOnly).with_home("mkdir work"),
        };
        if let Some(home) = &place.home
            && shared.is_none()
        {
            place.workspace = home.join("work");
        }
        let pipe = place.workspace.join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // Otherwise a command that may write waits for a reader.
        let mut options = fs::OpenOptions::new();
        let _reader = options.read(true).write(true).open(&pipe).unwrap();
        place.fails("echo a > pipe");
        // What takes a file of its own still works.
        let sorted = place.works(
            "sort -S 1K <(seq 5000) | head -n 1; cat <<< a; f=$(mktemp) && echo b > $f && cat $f",
        );
        assert_eq!(sorted, "1\na\nb\n");
    }
}

#[test]
fn a_name_that_another_agent_or_an_editor_obeys_is_set_aside() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    for name in [
        ".cursorrules",
        "CLAUDE.local.md",
        ".zed",
        ".devcontainer",
        ".zshenv",
        "opencode.json",
    ] {
        place.works(&format!("echo a > {name}"));
        assert!(!place.workspace.join(name).exists(), "{name}");
        assert!(
            place.workspace.join(format!("{name}.refused")).exists(),
            "{name}"
        );
    }
}

#[test]
fn memory_that_is_no_processs_is_bounded() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    place.refused(
        "if libc.shmget(0, 65537, 0o1600) < 0: raise OSError(ctypes.get_errno(), 'shmget')",
    );
    place.works(
        "python3 -c 'import ctypes; assert ctypes.CDLL(None).shmget(0, 65536, 0o1600) >= 0'",
    );
    let attributes = "
import os
try:
    for file in range(3000):
        path = '/tmp/%d' % file
        open(path, 'w').close()
        for number in range(20):
            os.setxattr(path, 'user.%d' % number, b'x' * 60000)
    print('all')
except OSError as err:
    print(err.strerror)
";
    let shown = place.works(&format!("python3 -c \"{attributes}\""));
    // Before Linux 6.6 there are no such attributes.
    assert!(
        shown.starts_with("No space") || shown.contains("not supported"),
        "{shown}"
    );
}

#[test]
fn caches_are_where_a_command_may_write_and_outlive_it() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    place.works(
        "echo a > $XDG_CACHE_HOME/a; echo a > $GOCACHE/b; test \"$npm_config_cache\" = $SCRATCH/npm
         test \"$CARGO_INSTALL_ROOT\" = $SCRATCH/cargo-install",
    );
    assert!(place.scratch.join("cache/a").exists() && place.scratch.join("go-build/b").exists());
    place.works("cat $XDG_CACHE_HOME/a");
    if Path::new("/usr/bin/npm").exists() {
        place.works(
            "printf '{\"scripts\":{\"test\":\"node -e 0\"}}' > package.json && npm test --silent",
        );
    }
}

#[test]
fn a_command_runs_in_a_directory_of_the_home_that_it_may_not_read() {
    if !is_enforced() {
        return;
    }
    let home = std::env::home_dir().unwrap();
    let elsewhere = TempDir::new_in(&home).unwrap();
    fs::write(elsewhere.path().join("key"), "").unwrap();
    let place = Place::new(SandboxMode::ReadOnly);
    let output = place.run_in(elsewhere.path(), "pwd && ls -A");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown.trim(), elsewhere.path().to_str().unwrap());
}

#[test]
fn what_does_not_exist_is_an_error_before_anything_runs() {
    if !is_enforced() {
        return;
    }
    let spec = SandboxSpec::new(SandboxMode::ReadOnly, vec!["/rondo/nowhere"]);
    assert!(confine(&mut Command::new("/bin/true"), &spec).is_err());
    probe(Enforcement::Full).unwrap();
}

#[test]
fn the_terminals_of_others_are_not_there() {
    if !is_enforced() {
        return;
    }
    let master = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let place = workspace_write();
    place.fails(&format!("echo a > {}", name.to_str().unwrap()));
}

#[test]
fn no_file_gains_whoever_runs_it_the_rights_of_its_owner() {
    if !is_enforced() {
        return;
    }
    let place = workspace_write();
    place.works(
        "touch a && chmod 755 a && mkdir -m 700 b && install -m 644 a c && (umask 0; touch d)",
    );
    for refused in [
        "chmod 4755 a",
        "chmod g+s a",
        "chmod u+s a",
        "install -m 2755 a e",
        "mkdir -m 2755 f",
        "cp /bin/true g && chmod 6755 g",
    ] {
        place.fails(refused);
    }
    place.refused("os.open('h', os.O_CREAT | os.O_WRONLY, 0o4755)");
    place.refused("os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o2755)");
    // One that was there before gives no user the rights of its owner once it has other content.
    let was_there = place.workspace.join("was-there");
    std::fs::write(&was_there, "before").unwrap();
    std::fs::set_permissions(&was_there, fs::Permissions::from_mode(0o4755)).unwrap();
    place.works("printf after | dd of=was-there conv=notrunc");
    let mode = std::fs::metadata(&was_there).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    // The flag alone says that the mode counts.
    place.works("python3 -c \"import os; os.open('a', os.O_RDONLY, 0o4755)\"");
}

/// The test of a read-only file system runs again in a mount namespace, with this variable.
const IS_MOUNTED: &str = "RONDO_TEST_READ_ONLY";

#[test]
fn a_command_runs_on_a_file_system_that_is_mounted_read_only() {
    if !is_enforced() {
        return;
    }
    let Some(workspace) = std::env::var_os(IS_MOUNTED) else {
        let place = Place::with_repository();
        let again = Command::new("unshare")
            .args(["-Urm", "sh", "-ec"])
            .arg("mount --bind . . && mount -o remount,bind,ro . && cd / && exec \"$@\"")
            .args(["sh".as_ref(), std::env::current_exe().unwrap().as_os_str()])
            .args(["a_command_runs_on_a_file_system", "--nocapture"])
            .env(IS_MOUNTED, &place.workspace)
            .current_dir(&place.workspace)
            .output()
            .unwrap();
        assert!(again.status.success(), "{again:?}");
        return;
    };
    let mut place = workspace_write();
    place.workspace = workspace.into();
    place.works("git status && cat .git/HEAD");
    place.fails("echo a > a");
    place.fails("echo a > .git/a");
}
