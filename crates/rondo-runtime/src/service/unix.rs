//! News of changes to the journal's files, from the system.

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use std::fs::File;
    use std::io;
    use std::path::Path;
    use tokio::net::unix::pipe::Receiver;

    /// Bytes of events that are read at once.
    const EVENT_BYTES: usize = 4096;

    /// Tells when a file of the journal was written to, and when a lock of a session was closed. Events are read as bytes from a pipe would be: what they say
    /// is not looked at, since the journal's version tells whether anything is new.
    pub(crate) struct Changes(Receiver);

    impl Changes {
        /// Listens from now on.
        ///
        /// # Errors
        /// When a directory cannot be watched, or the system has no more watches to give.
        pub(in super::super) fn of(journal: &Path, locks: &Path) -> io::Result<Self> {
            let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let written = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
            inotify::add_watch(&descriptor, journal, written)?;
            // Also when a process is killed: nothing is written then.
            inotify::add_watch(&descriptor, locks, WatchFlags::CLOSE_WRITE)?;
            let events = Receiver::from_file_unchecked(File::from(descriptor))?;
            Ok(Self(events))
        }

        /// Waits for a change since the last call.
        ///
        /// # Errors
        /// When nothing can be read any more.
        ///
        /// # Cancel safety
        /// Cancel safe.
        pub(in super::super) async fn next(&mut self) -> io::Result<()> {
            loop {
                self.0.readable().await?;
                let mut bytes = [0; EVENT_BYTES];
                match self.0.try_read(&mut bytes) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(_) => return Ok(()),
                    Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                    Err(err) => return Err(err),
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::future::pending;
    use std::io;
    use std::path::Path;

    /// There is no news of single files here: it is looked again and again.
    pub(crate) struct Changes;

    impl Changes {
        /// Returns an error, as there is no watch.
        ///
        /// # Errors
        /// Always.
        pub(in super::super) fn of(_: &Path, _: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Waits forever.
        ///
        /// # Errors
        /// None.
        ///
        /// # Cancel safety
        /// Cancel safe.
        pub(in super::super) async fn next(&mut self) -> io::Result<()> {
            pending().await
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::Changes;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Changes;
