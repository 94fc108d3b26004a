//! File metadata that only Unix has.

use cap_std::fs::{File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{Gid, Uid, XattrFlags};
use std::ffi::CStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The mode of a file that only its owner may read and write.
const PRIVATE: u32 = 0o600;
/// The write bits of a mode.
const WRITE_BITS: u32 = 0o222;
/// The bound on the names of a file's extended attributes, and on the value of each, in bytes: that of Linux.
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;
/// Names of attributes that the system sets by itself, which an ordinary user may not set.
const OF_SYSTEM: [&[u8]; 2] = [b"security.", b"trusted."];

/// Returns the id of the user that a path belongs to; `None` if it cannot be looked at.
pub(crate) fn owner(path: &Path) -> Option<u32> {
    path.metadata().ok().map(|it| it.uid())
}

/// Returns whether a file is read-only for all users, by its permission bits.
pub(crate) fn is_read_only(metadata: &Metadata) -> bool {
    metadata.mode() & WRITE_BITS == 0
}

/// Returns options that make a file that only its owner may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE);
    options
}

/// Gives a new file the owner, the group, the extended attributes (access control lists are among them) and the permission
/// bits of the file that it replaces.
///
/// # Errors
/// When the new file cannot have them: another user's file is only kept as it is if it is written in place.
pub(crate) fn take_over(old: &File, before: &Metadata, new: &File) -> io::Result<()> {
    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
        let (user, group) = (Uid::from_raw(before.uid()), Gid::from_raw(before.gid()));
        rustix::fs::fchown(new, Some(user), Some(group))?;
    }
    copy_attributes(old, new)?;
    new.set_permissions(before.permissions())
}

fn copy_attributes(old: &File, new: &File) -> io::Result<()> {
    let mut names = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = match rustix::fs::flistxattr(old, &mut names[..]) {
        Ok(length) => length,
        // This file system has none.
        Err(rustix::io::Errno::NOTSUP) => return Ok(()),
        Err(err) => return Err(err.into()),
    };
    let names = names.get(..length).unwrap_or_default();
    let mut value = Vec::new();
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else {
            continue;
        };
        value.resize(ATTRIBUTE_BYTES_MAX, 0);
        let copied = rustix::fs::fgetxattr(old, name, &mut value[..]).and_then(|length| {
            let value = value.get(..length).unwrap_or_default();
            rustix::fs::fsetxattr(new, name, value, XattrFlags::empty())
        });
        let is_of_system = OF_SYSTEM.iter().any(|it| name.to_bytes().starts_with(it));
        match copied {
            Err(err) if !is_of_system => return Err(err.into()),
            _ => {}
        }
    }
    Ok(())
}
