//! The output of a running command, as text.

use rondo_core::ports::OutputSink;

/// Turns bytes into text for people, characters that are split between pieces included.
pub(crate) struct LiveText<'a> {
    sink: &'a OutputSink,
    partial: Vec<u8>,
}

impl<'a> LiveText<'a> {
    pub(crate) fn new(sink: &'a OutputSink) -> Self {
        Self {
            sink,
            partial: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let incomplete = incomplete_tail(&self.partial);
        let rest = self.partial.split_off(self.partial.len() - incomplete);
        let whole = std::mem::replace(&mut self.partial, rest);
        if !whole.is_empty() {
            self.sink.push(String::from_utf8_lossy(&whole).into_owned());
        }
    }

    pub(crate) fn finish(&mut self) {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.sink.push(String::from_utf8_lossy(&rest).into_owned());
        }
    }
}

/// Returns how many bytes at the end begin a character without ending it; 0 to 3.
fn incomplete_tail(bytes: &[u8]) -> usize {
    bytes
        .utf8_chunks()
        .last()
        .map(|chunk| chunk.invalid())
        .filter(|tail| std::str::from_utf8(tail).is_err_and(|err| err.error_len().is_none()))
        .map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_text_joins_characters_that_were_split() {
        let whole = "a\u{e4}\u{20ac}\u{1f600}b";
        for cut in 0..=whole.len() {
            let (tx, rx) = std::sync::mpsc::channel();
            let sink = OutputSink::new(move |text| drop(tx.send(text)));
            let mut live = LiveText::new(&sink);
            live.push(&whole.as_bytes()[..cut]);
            live.push(&whole.as_bytes()[cut..]);
            live.finish();
            drop(sink);
            assert_eq!(rx.iter().collect::<String>(), whole, "cut at {cut}");
        }
    }
}
