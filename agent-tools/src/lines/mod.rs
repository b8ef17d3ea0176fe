//! Lines of streams, read with a bound.

#[cfg(any(feature = "a2a", feature = "mcp"))]
mod event;

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[cfg(any(feature = "a2a", feature = "mcp"))]
pub(crate) use self::event::Event;

/// How much of a line that is too long is kept, at each end.
pub(crate) const ENDS: usize = 512;

/// Reads lines of at most so many bytes.
pub(crate) struct LineReader {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    line: Line,
    pub(crate) limit: usize,
}

/// The line that is being read. It outlives a read that was given up.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) bytes: Vec<u8>,
    /// The length of what was left out of a line that is too long: `bytes` are then its beginning, and this its end.
    pub(crate) over: Option<(usize, Vec<u8>)>,
}

impl Line {
    pub(crate) fn push(&mut self, more: &[u8], limit: usize) {
        if self.over.is_none() && self.bytes.len() + more.len() <= limit {
            return self.bytes.extend_from_slice(more);
        }
        let (length, end) = self.over.get_or_insert_with(|| (self.bytes.len(), Vec::new()));
        *length += more.len();
        self.bytes.truncate(ENDS);
        end.extend_from_slice(&more[more.len().saturating_sub(ENDS)..]);
        end.drain(..end.len().saturating_sub(ENDS));
    }
}

impl LineReader {
    pub(crate) fn new(reader: Box<dyn AsyncRead + Send + Unpin>, limit: usize) -> Self {
        Self { reader: BufReader::new(reader), line: Line::default(), limit }
    }

    /// The next line, or none at the end of the stream. A read that is given up loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let there = self.reader.fill_buf().await?;
            if there.is_empty() {
                return Ok(None);
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(there.len(), |at| at + 1);
            self.line.push(&there[..end.unwrap_or(used)], self.limit);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}
