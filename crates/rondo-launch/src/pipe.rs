//! Whole messages over the pipes between an agent and its supervisor.

use super::unix;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How much is read at once, in bytes.
const READ_BYTES: usize = 16 << 10;
/// How long an agent that does not read is waited for with the final status.
const FINAL_WRITE_MAX: Duration = Duration::from_secs(10);

/// Reads the specification that a supervisor is given first, a line of JSON, and returns it with what
/// was read behind it.
pub(super) fn read_line(from: impl AsFd, bytes_max: usize) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; READ_BYTES];
    loop {
        let read = match rustix::io::read(&from, &mut buffer) {
            Ok(0) => break,
            Ok(length) => buffer.get(..length).unwrap_or_default(),
            Err(Errno::INTR) => continue,
            Err(err) => return Err(err.into()),
        };
        let end = read.iter().position(|byte| *byte == b'\n');
        let length = bytes.len() + end.unwrap_or(read.len());
        if length >= bytes_max {
            break;
        }
        bytes.extend_from_slice(read);
        if end.is_some() {
            let rest = bytes.split_off(length + 1);
            return Ok((bytes, rest));
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "the specification is cut off or too long",
    ))
}

/// Writes everything to a descriptor that waits.
pub(super) fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
    Ok(())
}

/// Sends the last bytes to an agent that reads them within its time; does not wait on the descriptor.
pub fn send_last(frames: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    let until = Instant::now() + FINAL_WRITE_MAX;
    while !bytes.is_empty() {
        match rustix::io::write(frames, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::AGAIN) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let mut fds = [PollFd::new(frames, PollFlags::OUT)];
                let _ = rustix::event::poll(&mut fds, Some(&unix::timespec(left)));
            }
            Err(Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::thread;

    fn read(pieces: &[&[u8]], bytes_max: usize) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let (from, mut to) = io::pipe()?;
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let writing = thread::spawn(move || pieces.iter().try_for_each(|it| to.write_all(it)));
        let read = read_line(&from, bytes_max);
        drop(from);
        // A reader that has what it wants need not wait for more.
        let _ = writing.join();
        read
    }

    #[test]
    fn a_specification_is_read_up_to_its_line_end_and_what_is_behind_it_is_kept() {
        for (pieces, behind) in [
            (&[&b"[1,2]\ng"[..]][..], &b"g"[..]),
            (&[b"[1", b",2]\n"], b""),
            (&[b"[1,2]", b"\nge"], b"ge"),
        ] {
            let (line, rest) = read(pieces, 100).unwrap();
            assert_eq!((line, rest), (b"[1,2]\n".to_vec(), behind.to_vec()));
        }
        let long = format!("\"{}\"\nge", "x".repeat(40_000));
        let (line, rest) = read(&[long.as_bytes()], 50_000).unwrap();
        assert_eq!([line, rest].concat(), long.as_bytes());
    }

    #[test]
    fn a_specification_without_an_end_or_past_its_bound_is_refused() {
        assert_eq!(read(&[b"[1, 2]\n"], 7).unwrap().0, b"[1, 2]\n");
        for (line, bytes_max) in [
            (&b"[1, 2]\n"[..], 6),
            (b"[1, 2]", 100),
            (b"", 100),
            (&[b'1'; 100_000], 50_000),
        ] {
            let refused = read(&[line], bytes_max).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "the specification is cut off or too long"
            );
        }
    }
}
