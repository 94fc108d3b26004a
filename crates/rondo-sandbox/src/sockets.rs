//! The sockets with a path that are in use, as the kernel lists them.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// File in which the kernel lists the sockets of this network namespace, one per line (`proc_net(5)`).
const LIST: &str = "/proc/net/unix";

/// Returns the file names of sockets that are in use. A program may have given a path from a directory of its own, so only
/// the names tell which files they are.
pub(crate) fn names() -> HashSet<OsString> {
    names_in(&std::fs::read(LIST).unwrap_or_default())
}

fn names_in(list: &[u8]) -> HashSet<OsString> {
    let lines = list.split(|byte| *byte == b'\n').skip(1);
    // The path follows the number of the inode, which is the seventh column.
    let paths = lines.filter_map(|line| {
        let number = line.splitn(7, |byte| *byte == b' ').nth(6)?;
        let mut parts = number.trim_ascii_start().splitn(2, |byte| *byte == b' ');
        parts.nth(1)
    });
    let names = paths.filter_map(|path| Path::new(OsStr::from_bytes(path)).file_name());
    names.map(OsStr::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_absolute_and_relative_paths() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            000000000da7f628: 00000003 00000000 00000000 0001 03 17715123\n\
            00000000a91faaa1: 00000002 00000000 00010000 0001 01   647 /w/a b/dev server.sock\n\
            000000003e1c525e: 00000002 00000000 00010000 0001 01 17715125 x.sock\n\
            000000003e1c525f: 00000002 00000000 00010000 0001 01 17715126 @/abstract\n";
        let mut names: Vec<OsString> = names_in(list).into_iter().collect();
        names.sort();
        assert_eq!(names, ["abstract", "dev server.sock", "x.sock"]);
    }
}
