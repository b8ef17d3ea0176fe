//! [`Framing`]: boundaries between the events of a stream.

#[cfg(feature = "bedrock")]
mod aws;
mod lines;
mod sse;

use agent_core::{Error, ErrorKind, Result, Retry};

use self::lines::LineSplitter;
pub(crate) use self::sse::BYTE_ORDER_MARK;
pub use self::sse::{SseEvent, SseSplitter};

/// Framing of the events of a streamed answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events; a decoder receives the data of each.
    #[default]
    ServerSentEvents,
    /// One JSON value per line.
    Lines,
    /// AWS event streams, which need the feature `bedrock`. A decoder receives an object with an
    /// event's payload under its type, or the bytes themselves of an event that wraps bytes. An
    /// exception becomes an object that carries it under `error`.
    AwsEvents,
}

impl Framing {
    /// Returns a splitter for a new stream.
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
            #[cfg(feature = "bedrock")]
            Self::AwsEvents => Kind::Aws(aws::AwsSplitter::default()),
            #[cfg(not(feature = "bedrock"))]
            Self::AwsEvents => Kind::Unknown,
        })
    }
}

/// Splits the bytes of a stream into events, independent of chunk boundaries. Created by
/// [`Framing::splitter`].
#[derive(Debug)]
pub struct Splitter(Kind);

#[derive(Debug)]
enum Kind {
    Sse(SseSplitter),
    Lines(LineSplitter),
    #[cfg(feature = "bedrock")]
    Aws(aws::AwsSplitter),
    #[cfg(not(feature = "bedrock"))]
    Unknown,
}

impl Splitter {
    /// Takes the next bytes and passes every event that they complete to `take`.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] for an event of more than 16 MiB; the errors of `take`. The stream
    /// is unusable after an error.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
        match &mut self.0 {
            Kind::Sse(splitter) => splitter.push(bytes, |event| take(event.data)),
            Kind::Lines(splitter) => splitter.push(bytes, take),
            #[cfg(feature = "bedrock")]
            Kind::Aws(splitter) => splitter.push(bytes, take),
            #[cfg(not(feature = "bedrock"))]
            Kind::Unknown => Err(Error::config("AWS's event streams cannot be read: enable the feature 'bedrock'")),
        }
    }

    /// Ends the stream. An event that lacks only its terminator is passed to `take`, because some
    /// servers omit it.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(self, mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
        match self.0 {
            Kind::Sse(splitter) => splitter.finish(|event| take(event.data)),
            Kind::Lines(splitter) => splitter.finish(take),
            // A truncated frame carries no event.
            #[cfg(feature = "bedrock")]
            Kind::Aws(_) => Ok(()),
            #[cfg(not(feature = "bedrock"))]
            Kind::Unknown => Ok(()),
        }
    }
}

/// Encodes event data as bytes on the wire, for tests of codecs. AWS event streams need the feature
/// `bedrock`.
#[cfg(feature = "testing")]
pub fn framed<E: AsRef<str>>(framing: Framing, events: impl IntoIterator<Item = E>) -> Vec<u8> {
    let framed = |data: &str| match framing {
        Framing::ServerSentEvents => format!("data: {data}\n\n").into_bytes(),
        Framing::Lines => format!("{data}\n").into_bytes(),
        #[cfg(feature = "bedrock")]
        Framing::AwsEvents => aws::framed(data),
        #[cfg(not(feature = "bedrock"))]
        Framing::AwsEvents => Vec::new(),
    };
    events.into_iter().flat_map(|data| framed(data.as_ref())).collect()
}

/// Default maximum size of one event, in bytes.
const LONGEST: usize = 16 << 20;

fn too_long(longest: usize) -> Error {
    let message = format!("an event of the stream is longer than {longest} bytes");
    Error::new(ErrorKind::Protocol, message).with_retry(Retry::Permanent)
}
