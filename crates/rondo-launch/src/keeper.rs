//! The small process that forks supervisors for its agent.
//!
//! Starting this program takes milliseconds, most of which are spent before `main`. So an agent starts it
//! once, as its keeper, and hands each call over to it: one message on a socket, with the descriptors
//! of a [sealed specification](super::handed), of two pipes between agent and supervisor, of a socket that tells of
//! the fork, and of what else is given. The keeper forks, the fork becomes the supervisor or its guard, and nothing
//! of what was given stays behind. The keeper ends with its agent; what it has forked does not depend on it.

use super::assignment::{Assignment, CALL_DESCRIPTORS};
use super::role::{Role, SUPERVISE_ARG, perform};
use super::spare;
use super::spares::{SpareConnection, SpareUse};
use super::unix::{self, descriptors, handover};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::process::Command;

/// The argument behind [`SUPERVISE_ARG`] that asks for a keeper.
pub(super) const KEEPER_ARG: &str = "keeper";
/// Byte from a guard that ends by itself.
pub(super) const GUARD_ENDS: u8 = b'.';

/// Keepers at once, one for each program; agents use one or two.
const KEEPERS_MAX: usize = 4;
/// How many keepers of a program may be lost before any of them has forked; then it is not tried again.
const LOST_MAX: u32 = 3;

/// Forks supervisors until the agent is gone; in the forks, performs the role that was asked for. Returns the exit
/// code.
pub(super) fn serve(roles: &[Role]) -> i32 {
    let Ok(agent) = handover::Parent::leave() else {
        return 1;
    };
    handover::forget_children(true);
    let keeper = std::process::id();
    loop {
        let given = match agent.next() {
            Ok(Some(given)) if given.is_empty() => continue,
            Ok(Some(given)) => given,
            Ok(None) => return 0,
            Err(_) => return 1,
        };
        // If that fails, the agent sees that its descriptors are closed.
        if let Ok(None) = unix::fork() {
            drop(agent);
            handover::forget_children(false);
            return match given.len() {
                spare::DESCRIPTORS => spare::serve(given, keeper),
                _ => match Assignment::from_keeper(given, keeper) {
                    Ok((name, given)) => perform(roles, &name, Ok(given)),
                    Err(err) => perform(roles, "", Err(err)),
                },
            };
        }
    }
}

/// A call that was handed to a keeper; it has not begun before its guard has reported.
#[derive(Debug)]
pub(super) struct HandedCall {
    /// Commands to the supervisor.
    pub(super) control: File,
    /// Replies of the supervisor.
    pub(super) frames: OwnedFd,
    /// Notifications of the guard; at end of file when it is gone. Reading does not block.
    pub(super) life: UnixStream,
    /// Stands for the guard, once that has reported.
    pub(super) guard: Option<Arc<OwnedFd>>,
    pub(super) keeper: Arc<Keeper>,
    /// How the supervisor is handed another call after this one; `None` if it takes none.
    pub(super) way: Option<SpareConnection>,
}

/// A keeper that was started.
#[derive(Debug)]
pub(super) struct Keeper {
    socket: UnixStream,
    process: OwnedFd,
    /// Whose child it is: a fork of that process has no keeper.
    pub(super) owner: u32,
    /// Conditions for its spares.
    pub(super) spares: SpareUse,
}

static KEEPERS: Mutex<Keepers> = Mutex::new(Keepers(Vec::new()));

/// The keepers of this process.
struct Keepers(Vec<Post>);

/// Location of a program's keeper, past or present.
struct Post {
    program: PathBuf,
    keeper: Option<Arc<Keeper>>,
    lost: u32,
}

/// Hands a call over to the program's keeper, which is started if there is none. The supervisor gets copies of
/// the `given` descriptors.
///
/// # Errors
/// When the program cannot keep, or the system cannot do it. Nothing of the call is left then.
pub(super) fn hand_over(
    program: &Path,
    memory: &OwnedFd,
    given: &[BorrowedFd<'_>],
) -> io::Result<HandedCall> {
    let (told, control) = io::pipe()?;
    let (frames, said) = io::pipe()?;
    let (life, of_guard) = life()?;
    let own: [BorrowedFd<'_>; CALL_DESCRIPTORS] =
        [memory.as_fd(), told.as_fd(), said.as_fd(), of_guard.as_fd()];
    let descriptors = [&own, given].concat();
    let mut keeper = keepers().keeper_of(program)?;
    if let Err(err) = keeper.send(&descriptors) {
        if err.kind() == io::ErrorKind::WouldBlock {
            return Err(err);
        }
        // It is gone.
        keeper.retire();
        keeper = keepers().keeper_of(program)?;
        keeper.send(&descriptors)?;
    }
    Ok(HandedCall {
        control: File::from(OwnedFd::from(control)),
        frames: frames.into(),
        life,
        guard: None,
        keeper,
        way: None,
    })
}

/// Returns the program's keeper, if there is one.
pub(super) fn present(program: &Path) -> Option<Arc<Keeper>> {
    let keepers = keepers();
    let post = keepers.0.iter().find(|it| it.program == program)?;
    let own = std::process::id();
    post.keeper.clone().filter(|it| it.owner == own)
}

/// Returns the two ends of a socket on which an agent is told of a fork; reading the first does not wait.
pub(super) fn life() -> io::Result<(UnixStream, UnixStream)> {
    let (life, of_guard) = UnixStream::pair()?;
    life.set_nonblocking(true)?;
    Ok((life, of_guard))
}

fn keepers() -> MutexGuard<'static, Keepers> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keepers {
    fn keeper_of(&mut self, program: &Path) -> io::Result<Arc<Keeper>> {
        let at = self.0.iter().position(|it| it.program == program);
        let mut post = match at {
            Some(at) => self.0.remove(at),
            None => Post::new(program),
        };
        let keeper = post.keeper();
        self.0.push(post);
        if self.0.len() > KEEPERS_MAX {
            // It ends when the last call that was handed to it has begun.
            drop(self.0.remove(0));
        }
        keeper
    }

    fn post_of(&mut self, keeper: &Arc<Keeper>) -> Option<&mut Post> {
        let has = |post: &&mut Post| {
            let kept = post.keeper.as_ref();
            kept.is_some_and(|it| Arc::ptr_eq(it, keeper))
        };
        self.0.iter_mut().find(has)
    }
}

impl Post {
    fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            keeper: None,
            lost: 0,
        }
    }

    fn keeper(&mut self) -> io::Result<Arc<Keeper>> {
        if let Some(keeper) = &self.keeper
            && keeper.owner == std::process::id()
        {
            return Ok(Arc::clone(keeper));
        }
        self.keeper = None;
        if self.lost >= LOST_MAX {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.lost += 1;
        let keeper = Arc::new(start(&self.program)?);
        Ok(Arc::clone(self.keeper.insert(keeper)))
    }
}

fn start(program: &Path) -> io::Result<Keeper> {
    let (socket, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command
        .args([SUPERVISE_ARG, KEEPER_ARG])
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env_clear()
        .envs(unix::seen_by_others_from_env());
    let mut child = command.spawn()?;
    let id = child.id().unwrap_or_default();
    let process = handover::handle_of_child(id);
    // It ends without its socket, and is waited for, whenever that is.
    tokio::spawn(async move { child.wait().await });
    tracing::debug!(keeper = id, "a keeper was started");
    Ok(Keeper {
        socket,
        process: process?,
        owner: std::process::id(),
        spares: SpareUse::default(),
    })
}

impl Keeper {
    pub(super) fn send(&self, given: &[BorrowedFd<'_>]) -> io::Result<()> {
        // A command can have stopped it.
        self.wake();
        descriptors::send(&self.socket, given)
    }

    /// Lets it continue, if it was stopped.
    pub(super) fn wake(&self) {
        handover::resume(&self.process);
    }

    /// Records that it has forked.
    pub(super) fn has_forked(self: &Arc<Self>) {
        if let Some(post) = keepers().post_of(self) {
            post.lost = 0;
        }
    }

    /// Kills it. Calls that it has begun continue.
    pub(super) fn retire(self: &Arc<Self>) {
        // Another may have its place already.
        handover::kill(&self.process);
        let mut keepers = keepers();
        if keepers
            .post_of(self)
            .and_then(|it| it.keeper.take())
            .is_some()
        {
            tracing::debug!("a keeper was given up");
        }
    }
}
