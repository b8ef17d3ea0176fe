//! Where one event of a stream ends and the next begins: [`Framing`].

mod lines;
mod sse;

use agent_core::{Error, ErrorKind, Result, Retry};

use self::lines::LineSplitter;
pub(crate) use self::sse::BYTE_ORDER_MARK;
pub use self::sse::{SseEvent, SseSplitter};

/// How the events of a streamed answer lie in its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events; a decoder gets the data of each.
    #[default]
    ServerSentEvents,
    /// One JSON value a line.
    Lines,
}

impl Framing {
    /// Begins to read a stream.
    ///
    /// ```
    /// use agent_llm::Framing;
    ///
    /// let (mut splitter, mut seen) = (Framing::Lines.splitter(), Vec::new());
    /// for bytes in [&b"{\"a\":"[..], b"1}\n\r\n{\"b\":2}"] {
    ///     splitter.push(bytes, |event| Ok(seen.push(event.to_owned())))?;
    /// }
    /// splitter.finish(|event| Ok(seen.push(event.to_owned())))?;
    /// assert_eq!(seen, [r#"{"a":1}"#, r#"{"b":2}"#]);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn splitter(self) -> Splitter {
        Splitter(match self {
            Self::ServerSentEvents => Kind::Sse(SseSplitter::default()),
            Self::Lines => Kind::Lines(LineSplitter::default()),
        })
    }
}

/// Splits the bytes of a stream into events, however the bytes were cut. Made by [`Framing::splitter`].
#[derive(Debug)]
pub struct Splitter(Kind);

#[derive(Debug)]
enum Kind {
    Sse(SseSplitter),
    Lines(LineSplitter),
}

impl Splitter {
    /// Takes the next bytes and gives every event that they complete to `take`.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] for an event of more than 16 MiB; the errors of `take`. The stream is then lost.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
        match &mut self.0 {
            Kind::Sse(splitter) => splitter.push(bytes, |event| take(event.data)),
            Kind::Lines(splitter) => splitter.push(bytes, take),
        }
    }

    /// Ends the stream. An event that lacks only its end is given to `take`: some servers leave it out.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(self, mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
        match self.0 {
            Kind::Sse(splitter) => splitter.finish(|event| take(event.data)),
            Kind::Lines(splitter) => splitter.finish(take),
        }
    }
}

/// The most bytes of one event, if nothing else was said.
const LONGEST: usize = 16 << 20;

fn too_long(longest: usize) -> Error {
    let message = format!("an event of the stream is longer than {longest} bytes");
    Error::new(ErrorKind::Protocol, message).with_retry(Retry::Permanent)
}
