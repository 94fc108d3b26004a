//! The echo of the line that makes the shell read its next command.

/// How much output is held back while the echo is looked for, in bytes.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Takes one echo out of the output.
pub(super) struct Echo {
    line: &'static [u8],
    held: Option<Vec<u8>>,
}

impl Echo {
    /// Looks for the echo of `line`, which ends with a line feed.
    pub(super) fn of(line: &'static [u8]) -> Self {
        Self {
            line: line.trim_ascii_end(),
            held: None,
        }
    }

    /// The line is being typed.
    pub(super) fn expect(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Returns the output without the echo; holds it back until that was seen.
    pub(super) fn take_from(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(held) = self.held.as_mut() else {
            return bytes.to_vec();
        };
        held.extend_from_slice(bytes);
        let found = find(held, self.line).map(|at| at + self.line.len());
        let is_whole =
            found.is_some_and(|end| held.get(end..).unwrap_or_default().contains(&b'\n'));
        match is_whole || held.len() > HELD_BYTES_MAX {
            true => self.end(),
            false => Vec::new(),
        }
    }

    /// Returns what is held back, without the echo if it is there.
    pub(super) fn end(&mut self) -> Vec<u8> {
        let mut held = self.held.take().unwrap_or_default();
        if let Some(at) = find(&held, self.line) {
            let after = held.get(at + self.line.len()..).unwrap_or_default();
            let end = [&b"\r\n"[..], b"\n"]
                .into_iter()
                .find(|end| after.starts_with(end));
            held.drain(at..at + self.line.len() + end.map_or(0, <[u8]>::len));
        }
        held
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_echo_is_taken_out_wherever_the_output_is_cut() {
        for (output, left) in [
            ("job\r\n next\r\nmore next\r\n", "job\r\nmore next\r\n"),
            (" next\nx", "x"),
            (" next", ""),
            ("none at all", "none at all"),
        ] {
            for cut in 0..=output.len() {
                let mut echo = Echo::of(b" next\n");
                assert_eq!(echo.take_from(b" next\n"), b" next\n");
                echo.expect();
                let mut rest = echo.take_from(&output.as_bytes()[..cut]);
                rest.extend(echo.take_from(&output.as_bytes()[cut..]));
                rest.extend(echo.end());
                assert_eq!(
                    String::from_utf8_lossy(&rest),
                    left,
                    "{output} cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn an_echo_that_does_not_come_holds_back_a_bounded_amount() {
        let mut echo = Echo::of(b" next\n");
        echo.expect();
        assert_eq!(echo.take_from(&vec![b'x'; HELD_BYTES_MAX]), b"");
        assert_eq!(echo.take_from(b"x").len(), HELD_BYTES_MAX + 1);
        assert_eq!(echo.take_from(b"y"), b"y");
    }
}
