//! Line reader with a length limit.

#[cfg(any(feature = "a2a", feature = "mcp"))]
mod event;

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[cfg(any(feature = "a2a", feature = "mcp"))]
pub(crate) use self::event::Event;

/// Number of bytes of an overlong line that are kept at each end.
pub(crate) const ENDS: usize = 512;

/// Reads lines of a bounded length.
pub(crate) struct LineReader {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    line: Line,
    pub(crate) limit: usize,
}

/// Line that is being read. It survives a cancelled read.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) bytes: Vec<u8>,
    /// Length of the omitted part of an overlong line, and its end; `bytes` then holds its
    /// beginning.
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

    /// Returns the next line, or `None` at the end of the stream. Cancellation safe: a cancelled
    /// read loses no data.
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
