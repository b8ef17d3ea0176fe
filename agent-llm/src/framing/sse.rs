//! Parser of server-sent events.

use std::borrow::Cow;

use agent_core::Result;
use memchr::memchr2;

use super::{LONGEST, too_long};

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Event type; empty if it has none.
    pub name: &'a str,
    /// Event data: the `data` lines, joined by line breaks.
    pub data: &'a str,
}

/// Splits a byte stream into server-sent events, independent of chunk boundaries.
///
/// Accepts all three line endings, a byte order mark, comments and data of several lines. Bytes
/// that are not UTF-8 become replacement characters.
///
/// ```
/// use agent_llm::SseSplitter;
///
/// let (mut splitter, mut seen) = (SseSplitter::default(), Vec::new());
/// for bytes in [&b"data: on"[..], b"e\r\n\r\n: a comment\ndata: two\n\n"] {
///     splitter.push(bytes, |event| Ok(seen.push(event.data.to_owned())))?;
/// }
/// assert_eq!(seen, ["one", "two"]);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SseSplitter {
    /// A line whose end has not arrived yet.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// True if the last line ended with a carriage return: a line feed right after it belongs to
    /// the same line ending.
    after_return: bool,
    /// True once a line has been read: a byte order mark can no longer occur.
    begun: bool,
    longest: usize,
}

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Default for SseSplitter {
    /// Creates a splitter for events of at most 16 MiB.
    fn default() -> Self {
        Self::new(LONGEST)
    }
}

impl SseSplitter {
    /// Creates a splitter for events of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            begun: false,
            longest,
        }
    }

    /// Takes the next bytes and passes every event that they complete to `take`.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`](agent_core::ErrorKind::Protocol) for an event that is too long; the
    /// errors of `take`. The stream is unusable after an error.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(SseEvent<'_>) -> Result<()>) -> Result<()> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.check_length(rest.len())?;
                self.line.extend_from_slice(rest);
                break;
            };
            self.after_return = rest[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&rest[..end], &mut take)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest[..end]);
                self.take_line(&line, &mut take)?;
                line.clear();
                self.line = line;
            }
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    /// Ends the stream. An event that lacks only the empty line after it is passed to `take`,
    /// because some servers omit it.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self, mut take: impl FnMut(SseEvent<'_>) -> Result<()>) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut take)?;
        }
        self.dispatch(&mut take)
    }

    fn take_line(&mut self, line: &[u8], take: &mut impl FnMut(SseEvent<'_>) -> Result<()>) -> Result<()> {
        let begun = std::mem::replace(&mut self.begun, true);
        let line = if begun { line } else { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) };
        if line.is_empty() {
            return self.dispatch(take);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                self.check_length(value.len())?;
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {} // comment (empty field name), id, retry, or unknown field
        }
        Ok(())
    }

    fn dispatch(&mut self, take: &mut impl FnMut(SseEvent<'_>) -> Result<()>) -> Result<()> {
        if std::mem::take(&mut self.has_data) {
            let (name, data) = (text(&self.name), text(&self.data));
            take(SseEvent { name: &name, data: &data })?;
        }
        self.name.clear();
        self.data.clear();
        Ok(())
    }

    fn check_length(&self, more: usize) -> Result<()> {
        if self.line.len() + self.data.len() + more <= self.longest {
            return Ok(());
        }
        Err(too_long(self.longest))
    }
}

/// Fast path: nearly all text is valid UTF-8, and checking only that costs a tenth of
/// `from_utf8_lossy`.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}
