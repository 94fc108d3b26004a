//! The file system that a journal lies on, by the type that the kernel mounted.
//!
//! SQLite's log needs memory that all processes share, and all of the journal needs locks: local file systems have both,
//! network file systems have neither for sure.

use crate::error::JournalError;
use std::path::Path;

/// Suitability of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Locks hold, and processes share memory.
    Local,
    /// One of a type that is not known here: locks are likely to hold.
    Unknown(String),
    /// Locks do not hold.
    Network(String),
}

/// Types of local file systems.
const LOCAL: &[&str] = &[
    "apfs", "bcachefs", "btrfs", "devtmpfs", "ecryptfs", "erofs", "exfat", "ext2", "ext3", "ext4",
    "f2fs", "fuseblk", "hfsplus", "iso9660", "jfs", "msdos", "nilfs2", "ntfs", "ntfs3", "overlay",
    "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "ubifs", "udf", "vfat", "xfs", "zfs",
];

/// Types of network file systems, those that a program serves included.
const NETWORK: &[&str] = &[
    "acfs",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "fuse.afpfs",
    "fuse.ceph",
    "fuse.cephfs",
    "fuse.curlftpfs",
    "fuse.davfs",
    "fuse.davfs2",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.goofys",
    "fuse.gvfsd-fuse",
    "fuse.juicefs",
    "fuse.mfs",
    "fuse.moosefs",
    "fuse.mount-s3",
    "fuse.nfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.seaweedfs",
    "fuse.smbnetfs",
    "fuse.sshfs",
    "fuse.weed",
    "gfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs3",
    "nfs4",
    "ocfs2",
    "orangefs",
    "panfs",
    "pvfs2",
    "rclone",
    "smb",
    "smb2",
    "smb3",
    "smbfs",
    "sshfs",
    "wekafs",
];

impl FileSystem {
    fn of_type(kind: &str) -> Self {
        if LOCAL.contains(&kind) {
            Self::Local
        } else if NETWORK.contains(&kind) {
            Self::Network(kind.to_owned())
        } else {
            Self::Unknown(kind.to_owned())
        }
    }

    /// Finds the file system of a directory.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(dir: &Path) -> Result<Self, JournalError> {
        use rustix::fs::{Mode, OFlags};
        use std::fs::read_to_string;
        use std::os::fd::AsRawFd as _;

        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(dir, flags, Mode::empty());
        let opened = opened.map_err(|error| JournalError::io(dir)(error.into()))?;
        let described = read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd()));
        let mounts = read_to_string("/proc/self/mountinfo");
        let kind = match (&described, &mounts) {
            (Ok(described), Ok(mounts)) => {
                mount_of(described).and_then(|mount| type_of(mounts, mount))
            }
            _ => None,
        };
        // If the kernel does not say it, nothing is known.
        Ok(Self::of_type(kind.unwrap_or("unknown")))
    }

    /// Accepts every file system: their types are known on Linux alone.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_dir: &Path) -> Result<Self, JournalError> {
        Ok(Self::Local)
    }
}

/// Returns the number of the mount in what the kernel says of a descriptor.
fn mount_of(described: &str) -> Option<&str> {
    let mut lines = described.lines();
    lines.find_map(|line| Some(line.strip_prefix("mnt_id:")?.trim()))
}

/// Returns the type of a mount: what follows the first field `-` of its line.
fn type_of<'a>(mounts: &'a str, mount: &str) -> Option<&'a str> {
    let mut lines = mounts.lines().map(str::split_ascii_whitespace);
    let mut fields =
        lines.find_map(|mut fields| (fields.next() == Some(mount)).then_some(fields))?;
    fields.find(|it| *it == "-")?;
    fields.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_mount_is_found_behind_its_optional_fields() {
        let mounts = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
            27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw\n\
            31 27 0:40 / /mnt/a\\040b rw shared:3 - fuse.sshfs host:/x rw\n";
        assert_eq!(type_of(mounts, "22"), Some("proc"));
        assert_eq!(type_of(mounts, "27"), Some("ext4"));
        assert_eq!(type_of(mounts, "31"), Some("fuse.sshfs"));
        assert_eq!(type_of(mounts, "2"), None);
        assert_eq!(
            mount_of("pos:\t0\nflags:\t012\nmnt_id:\t31\nino:\t5\n"),
            Some("31")
        );
    }

    #[test]
    fn a_type_is_local_or_of_the_network_or_unknown() {
        let of = FileSystem::of_type;
        assert_eq!(of("ext4"), FileSystem::Local);
        for kind in ["nfs4", "cifs", "smb3", "ceph", "fuse.sshfs", "fuse.rclone"] {
            assert_eq!(of(kind), FileSystem::Network(kind.to_owned()));
        }
        for kind in ["fuse", "fuse.bindfs", "9p", "virtiofs", "unknown"] {
            assert_eq!(of(kind), FileSystem::Unknown(kind.to_owned()));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_file_system_of_a_directory_is_found() {
        assert_eq!(
            FileSystem::of(Path::new("/dev/shm")).ok(),
            Some(FileSystem::Local)
        );
        let proc = FileSystem::of(Path::new("/proc")).ok();
        assert_eq!(proc, Some(FileSystem::Unknown("proc".to_owned())));
    }
}
