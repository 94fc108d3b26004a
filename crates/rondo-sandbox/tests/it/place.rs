//! A workspace and what lies outside of it, for commands in the sandbox.

use rondo_sandbox::{
    Enforcement, NetworkAccess, SandboxMode, SandboxSpec, UndoneChange, confine, probe,
    readable_roots_by,
};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Place {
    root: TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) scratch: PathBuf,
    /// The user's home directory.
    pub(crate) home: Option<PathBuf>,
    /// Variables of the user's environment beside `HOME`.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    mode: SandboxMode,
    pub(crate) enforcement: Enforcement,
    pub(crate) network: NetworkAccess,
    /// Hidden paths of the workspace.
    pub(crate) hidden: Vec<&'static str>,
    /// Restored paths after the latest command.
    pub(crate) undone: RefCell<Vec<UndoneChange>>,
}

impl Place {
    /// Beside the build: what is not in `/tmp` is there, and refused.
    pub(crate) fn new(mode: SandboxMode) -> Self {
        Self::at(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), mode)
    }

    pub(crate) fn at(root: TempDir, mode: SandboxMode) -> Self {
        let place = Self {
            workspace: root.path().join("workspace"),
            outside: root.path().join("outside"),
            scratch: root.path().join("scratch"),
            root,
            home: std::env::home_dir(),
            variables: Vec::from_iter(std::env::var_os("PATH").map(|it| ("PATH", it))),
            mode,
            enforcement: Enforcement::Full,
            network: NetworkAccess::Loopback,
            hidden: Vec::new(),
            undone: RefCell::default(),
        };
        fs::create_dir(&place.workspace).unwrap();
        fs::create_dir_all(place.outside.join(".ssh")).unwrap();
        fs::write(place.outside.join(".ssh/id"), "a key").unwrap();
        place
    }

    /// Runs a script in the workspace, outside of the sandbox.
    #[track_caller]
    pub(crate) fn prepare(&self, script: &str) {
        let done = Command::new("bash")
            .args(["-euc", &whole_words(script)])
            .current_dir(&self.workspace)
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
    }

    /// Gives the place an own home directory, made by a script that runs in it.
    #[track_caller]
    pub(crate) fn with_home(mut self, script: &str) -> Self {
        let home = self.root.path().join("home");
        fs::create_dir(&home).unwrap();
        let done = Command::new("bash")
            .args(["-euc", &whole_words(script)])
            .current_dir(&home)
            .env("HOME", &home)
            .env("WORKSPACE", &self.workspace)
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
        self.home = Some(home);
        self
    }

    pub(crate) fn with_repository() -> Self {
        let place = Self::new(SandboxMode::WorkspaceWrite);
        place.make_repository();
        place
    }

    pub(crate) fn make_repository(&self) {
        let done = Command::new("git")
            .args(["init", "-q", "-b", "main"])
            .current_dir(&self.workspace)
            .status();
        assert!(done.unwrap().success());
    }

    pub(crate) fn run(&self, script: &str) -> Output {
        self.run_in(&self.workspace, script)
    }

    pub(crate) fn run_in(&self, directory: &Path, script: &str) -> Output {
        let variable = |name: &str| {
            let mut variables = self.variables.iter();
            variables.find(|it| it.0 == name).map(|it| it.1.clone())
        };
        let workspace = vec![self.workspace.clone()];
        let readable = readable_roots_by(self.home.as_deref(), &workspace, &variable);
        let spec = SandboxSpec {
            enforcement: self.enforcement,
            network: self.network,
            hidden: self
                .hidden
                .iter()
                .map(|it| self.workspace.join(it))
                .collect(),
            readable: Arc::new(readable),
            home: self.home.clone(),
            scratch: (self.mode == SandboxMode::WorkspaceWrite).then(|| self.scratch.clone()),
            ..SandboxSpec::new(self.mode, workspace)
        };
        let mut command = Command::new("/bin/bash");
        command
            .args(["-c", &whole_words(script)])
            .current_dir(directory)
            .envs(self.home.as_ref().map(|it| ("HOME", it)))
            .envs(self.variables.iter().cloned())
            .env("SCRATCH", &self.scratch)
            .env("OUTSIDE", &self.outside);
        let mut protection = confine(&mut command, &spec).unwrap();
        let output = command.output().unwrap();
        *self.undone.borrow_mut() = protection.restore();
        output
    }

    #[track_caller]
    pub(crate) fn works(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    pub(crate) fn fails(&self, script: &str) {
        let output = self.run(script);
        assert!(!output.status.success(), "{script}: {output:?}");
    }

    /// Runs a script that would make a file outside. It is refused; below `/tmp`, which is the command's own, what it makes
    /// is gone with the command.
    #[track_caller]
    pub(crate) fn makes_nothing(&self, script: &str, file: &Path) {
        let output = self.run(script);
        let is_own = file.starts_with("/tmp");
        assert!(is_own || !output.status.success(), "{script}: {output:?}");
        assert!(!file.exists(), "{script}: {output:?}");
    }

    /// Runs a program of Python that must end with an error of permission or of reaching nothing.
    #[track_caller]
    pub(crate) fn refused(&self, python: &str) {
        let program = format!(
            "import ctypes, errno, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n\
             def call(*a):\n    r = libc.syscall(*a)\n    if r < 0: raise OSError(ctypes.get_errno(), 'call')\n\
             try:\n    {python}\nexcept OSError as e:\n    print('refused', errno.errorcode.get(e.errno))"
        );
        let shown = self.works(&format!("python3 -c \"{}\"", program.replace('"', "'")));
        assert!(shown.starts_with("refused "), "{python}: {shown}");
    }
}

/// Most containers do not let a process confine itself; then there is nothing to test.
#[expect(clippy::print_stderr, reason = "what is not run is said")]
pub(crate) fn is_enforced(enforcement: Enforcement) -> bool {
    let tried = probe(enforcement);
    if let Err(err) = &tried {
        eprintln!("not run, since the sandbox is not enforced here: {err}");
    }
    tried.is_ok()
}

/// Makes a script split nothing at blanks that it expands: the tests may run below a directory with one in its name.
pub(crate) fn whole_words(script: &str) -> String {
    format!("IFS=$'\\n'; {script}")
}
