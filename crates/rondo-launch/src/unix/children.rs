//! The ends of children, told without a thread: to start one and to wake it takes a good part of a short command's time.

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Descriptor on which the signal handler reports the end of a child.
static TELL: AtomicI32 = AtomicI32::new(-1);

/// The children of this process, adopted ones too. Readable when some may have ended.
pub(crate) struct Children {
    told: PipeReader,
    /// Open as long as there is the handler, which uses it.
    tell: OwnedFd,
}

impl Children {
    /// Reports the ends of children from now on; children that have ended before must be collected at once.
    ///
    /// Takes the process's handler of the signal until this is dropped, so only the small supervisor may call it, and
    /// there may be no other.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(crate) fn notice() -> io::Result<Self> {
        let (told, tell) = io::pipe()?;
        rustix::io::ioctl_fionbio(&told, true)?;
        rustix::io::ioctl_fionbio(&tell, true)?;
        TELL.store(tell.as_raw_fd(), Ordering::Relaxed);
        handle_ends();
        Ok(Self {
            told,
            tell: tell.into(),
        })
    }

    /// Clears earlier reports; must be called before ended children are collected.
    pub(crate) fn forget_told(&self) {
        let _ = rustix::io::read(&self.told, &mut [0; 64]);
    }

    /// Collects a child that has ended; nothing if none has.
    ///
    /// # Errors
    /// When there are no children left.
    pub(crate) fn next_ended(&self) -> Result<Option<(Pid, WaitStatus)>, Errno> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Err(Errno::INTR) => {}
                ended => return ended,
            }
        }
    }

    /// Becomes readable again, if not all that has ended was collected.
    pub(crate) fn tell_again(&self) {
        let _ = rustix::io::write(&self.tell, b"c");
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        ignore_ends();
        TELL.store(-1, Ordering::Relaxed);
    }
}

impl AsFd for Children {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

#[expect(unsafe_code, reason = "signals have no safe interface")]
fn handle_ends() {
    let handler: extern "C" fn(libc::c_int) = tell_of_end;
    // SAFETY: the handler does only what may be done at any time.
    unsafe { libc::signal(libc::SIGCHLD, handler as libc::sighandler_t) };
}

#[expect(unsafe_code, reason = "signals have no safe interface")]
fn ignore_ends() {
    // SAFETY: the default action is not a code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

#[expect(unsafe_code, reason = "a handler may only make system calls")]
extern "C" fn tell_of_end(_signal: libc::c_int) {
    #[cfg(target_os = "linux")]
    // SAFETY: it returns the place of this thread.
    let place = unsafe { libc::__errno_location() };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: it returns the place of this thread.
    let place = unsafe { libc::__error() };
    // SAFETY: the place is this thread's own, and is left as it was found; the byte outlives the call, which does not
    // wait. If the pipe is full, enough was reported.
    unsafe {
        let error = *place;
        libc::write(TELL.load(Ordering::Relaxed), b"c".as_ptr().cast(), 1);
        *place = error;
    }
}
