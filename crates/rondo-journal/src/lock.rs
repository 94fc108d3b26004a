//! Who owns a session, and whether locks can be trusted where the journal lies.

use crate::error::StoreError;
use rondo_types::SessionId;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Held while this process owns the session; the kernel frees it when the process ends, however
/// it ends.
#[derive(Debug)]
pub(crate) struct SessionLock {
    _file: OwnedFd,
}

/// Takes the lock of a session, or says that another process has it.
pub(crate) fn lock(dir: &Path, session: &SessionId) -> Result<SessionLock, StoreError> {
    let path = dir.join(format!("{}.lock", file_name(session.as_str())));
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| StoreError::io(&path)(error.into()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(SessionLock { _file: file }),
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => Err(StoreError::InUse {
            session: session.clone(),
        }),
        Err(error) => Err(StoreError::io(&path)(error.into())),
    }
}

/// Makes a file name of any id: what is not a plain character is written as its code.
fn file_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}

/// Refuses network file systems: their locks come and go, and SQLite's WAL needs shared memory.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_network(dir: &Path) -> Result<(), StoreError> {
    /// From linux/magic.h and the file systems' own headers.
    const NETWORK: [(u32, &str); 7] = [
        (0x6969, "nfs"),
        (0x517b, "smb"),
        (0xff53_4d42, "cifs"),
        (0xfe53_4d42, "smb2"),
        (0x5346_414f, "afs"),
        (0x0bd0_0bd0, "lustre"),
        (0x00c3_6400, "ceph"),
    ];
    let found = rustix::fs::statfs(dir).map_err(|error| StoreError::io(dir)(error.into()))?;
    // The kernel's type of this field differs by platform; the magic numbers are 32 bits wide.
    let magic = (found.f_type as u64 & u64::from(u32::MAX)) as u32;
    match NETWORK.iter().find(|(known, _)| *known == magic) {
        Some((_, kind)) => Err(StoreError::NetworkFileSystem {
            path: dir.to_owned(),
            kind: (*kind).to_owned(),
        }),
        None => Ok(()),
    }
}

/// Refuses network file systems: their locks come and go, and SQLite's WAL needs shared memory.
#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_network(_dir: &Path) -> Result<(), StoreError> {
    Ok(())
}
