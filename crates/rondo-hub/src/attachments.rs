//! The files that come with messages, which are kept in the directory of their chat.
//!
//! A chat's commands write to that directory too, and may have put a link where such a file is to go. So it is opened
//! beneath the directory, and what is there under its name is removed and never followed.

use crate::channel::InboundFile;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use rondo_runtime::files::sync_above;
use rondo_types::text::first_bytes;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// Directory of the files, in the directory of a chat.
const INBOX_DIR: &str = "inbox";
/// Bytes of a file's own name, of which a file system takes 255 in all.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of the end of a longer name, which says what the file is.
const NAME_END_BYTES_MAX: usize = 20;

/// Keeps files in the chat's directory, under names that lead nowhere else; the same event keeps them under the same ones.
/// Returns their paths in that directory. The files are on the disk then, since the event is acknowledged next; that is
/// waited for on a thread of its own.
///
/// # Errors
/// When the disk fails.
pub(crate) async fn keep_all(
    directory: PathBuf,
    event: &str,
    files: &[InboundFile],
) -> io::Result<Vec<String>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let (event, files) = (event.to_owned(), files.to_vec());
    let keeping = spawn_blocking(move || {
        let kept = files.iter().map(|it| keep(&directory, &event, it));
        kept.collect()
    });
    keeping.await.map_err(io::Error::other)?
}

fn keep(directory: &Path, event: &str, file: &InboundFile) -> io::Result<String> {
    fs::create_dir_all(directory)?;
    let chat = Dir::open_ambient_dir(directory, ambient_authority())?;
    let inbox = inbox(&chat)?;
    let name = name(event, &file.name);
    remove(&inbox, &name)?;
    let mut kept = inbox.open_with(&name, OpenOptions::new().write(true).create_new(true))?;
    kept.write_all(&file.bytes)?;
    kept.sync_all()?;
    // The names of new files, too.
    for directory in [&inbox, &chat] {
        directory.open(".")?.sync_all()?;
    }
    sync_above(directory)?;
    Ok(format!("{INBOX_DIR}/{name}"))
}

fn inbox(chat: &Dir) -> io::Result<Dir> {
    let is_there = chat.symlink_metadata(INBOX_DIR).is_ok_and(|it| it.is_dir());
    if !is_there {
        remove(chat, INBOX_DIR)?;
        chat.create_dir(INBOX_DIR)?;
    }
    chat.open_dir(INBOX_DIR)
}

/// Removes a file or a link, if there is one.
fn remove(directory: &Dir, name: &str) -> io::Result<()> {
    match directory.remove_file(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn name(event: &str, given: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || "-_.".contains(*c);
    let shown: String = given.chars().filter(plain).collect();
    let shown = shortened(&shown);
    let mut digest = Sha256::new();
    digest.update(event);
    digest.update([0]);
    digest.update(given);
    let hash = data_encoding::HEXLOWER.encode(&digest.finalize());
    let begin = hash.get(..8).unwrap_or_default();
    format!("{begin}-{}", shown.trim_start_matches('.'))
}

/// Leaves out the middle of a name that is too long.
fn shortened(name: &str) -> String {
    if name.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let end = name.rfind('.').and_then(|at| name.get(at..));
    let end = end
        .filter(|it| it.len() <= NAME_END_BYTES_MAX)
        .unwrap_or_default();
    let begin = first_bytes(name, NAME_BYTES_MAX - end.len());
    format!("{begin}{end}")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::os::unix::fs::symlink;

    fn note(text: &str) -> InboundFile {
        InboundFile {
            name: "../.note.txt".to_owned(),
            bytes: text.to_owned().into(),
        }
    }

    #[test]
    fn a_file_is_kept_under_one_name_for_each_event() {
        let chat = tempfile::tempdir().unwrap();
        let first = keep(chat.path(), "e1", &note("one")).unwrap();
        let other = keep(chat.path(), "e2", &note("two")).unwrap();
        assert_eq!(keep(chat.path(), "e1", &note("again")).unwrap(), first);
        assert!(
            first.starts_with("inbox/") && first.ends_with("-note.txt"),
            "{first}"
        );
        for (path, text) in [(first, "again"), (other, "two")] {
            assert_eq!(fs::read_to_string(chat.path().join(path)).unwrap(), text);
        }
    }

    #[test]
    fn names_of_any_script_fit_a_file_system_and_keep_their_ends() {
        let chat = tempfile::tempdir().unwrap();
        for (begin, end) in [
            ("名".repeat(90), ".pdf"),
            ("𠀀".repeat(300), ".tar"),
            ("x".repeat(500), ".txt"),
            ("a.".repeat(300), ""),
            (String::new(), ".名"),
        ] {
            let file = InboundFile {
                name: format!("{begin}{end}"),
                bytes: "x".into(),
            };
            let path = keep(chat.path(), "e1", &file).unwrap();
            assert!(path.ends_with(end.trim_start_matches('.')), "{path}");
            assert!(path.len() <= "inbox/".len() + 9 + NAME_BYTES_MAX, "{path}");
            assert!(chat.path().join(path).is_file());
        }
    }

    #[test]
    fn the_disk_is_waited_for_on_no_thread_of_other_tasks() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build();
        let runtime = runtime.unwrap();
        let chat = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            // The only thread that may wait for a disk is taken.
            let (free, taken) = std::sync::mpsc::channel::<()>();
            let waits = spawn_blocking(move || taken.recv());
            let files = [note("one")];
            let keeping = keep_all(chat.path().to_owned(), "e1", &files);
            tokio::pin!(keeping);
            assert_eq!(keeping.as_mut().now_or_never().map(drop), None);
            assert_eq!(fs::read_dir(chat.path()).unwrap().count(), 0);
            drop(free);
            let kept = keeping.await.unwrap();
            assert!(chat.path().join(&kept[0]).is_file());
            assert!(waits.await.unwrap().is_err());
        });
    }

    #[test]
    fn a_link_that_a_command_left_in_its_place_is_not_followed() {
        let (chat, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), chat.path().join(INBOX_DIR)).unwrap();
        let path = keep(chat.path(), "e1", &note("one")).unwrap();
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        let kept = chat.path().join(path);
        let target = outside.path().join("target");
        fs::write(&target, "theirs").unwrap();
        fs::remove_file(&kept).unwrap();
        symlink(&target, &kept).unwrap();
        keep(chat.path(), "e1", &note("two")).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "two");
    }
}
