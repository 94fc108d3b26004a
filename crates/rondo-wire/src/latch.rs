//! Keeps a decoder from being used after it failed or was finished.

use crate::Decoder;
use rondo_types::{ModelError, ModelEvent, Usage};

/// A decoder that need not know whether it failed or was finished.
pub(crate) trait Reader: Send {
    /// Reads on; never called at the reply's end, nor after it failed.
    fn read(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Ends the body; called once.
    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Returns whether the reply's end was read.
    fn ended(&self) -> bool;

    /// Returns whether the reply counts even if the body never ends.
    fn is_whole(&self) -> bool;

    /// Ends a body that stays open behind a whole reply; called once, in place of `end`.
    fn conclude(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Returns the last token counts as the provider counts.
    fn reported_usage(&self) -> Option<Usage>;
}

/// Keeps a decoder's failure, and ends it once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LatchedReader<R> {
    pub(crate) reader: R,
    failed: Option<ModelError>,
    finished: bool,
}

impl<R> LatchedReader<R> {
    pub(crate) fn over(reader: R) -> Self {
        Self {
            reader,
            failed: None,
            finished: false,
        }
    }

    fn check(&self) -> Result<(), ModelError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn keep(&mut self, result: Result<(), ModelError>) -> Result<(), ModelError> {
        self.failed = result.as_ref().err().cloned();
        result
    }
}

impl<R: Reader> Decoder for LatchedReader<R> {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.check()?;
        if self.ended() {
            return Ok(());
        }
        let result = self.reader.read(bytes, out);
        self.keep(result)
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.check()?;
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        let result = self.reader.end(out);
        self.keep(result)
    }

    fn is_whole(&self) -> bool {
        self.failed.is_none() && !self.finished && self.reader.is_whole()
    }

    fn conclude(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !self.is_whole() {
            return self.finish(out);
        }
        self.finished = true;
        let result = self.reader.conclude(out);
        self.keep(result)
    }

    fn ended(&self) -> bool {
        self.finished || self.reader.ended()
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.reader.reported_usage()
    }
}
