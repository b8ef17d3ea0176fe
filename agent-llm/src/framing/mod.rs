//! Where one event of a stream ends and the next begins: [`Framing`].

#[cfg(feature = "bedrock")]
mod aws;
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
    /// AWS's event streams, which need the feature `bedrock`; a decoder gets an object with the payload of an event under its
    /// type, or, of an event that wraps bytes, those. An exception is an object that says it under `error`.
    AwsEvents,
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
            #[cfg(feature = "bedrock")]
            Self::AwsEvents => Kind::Aws(aws::AwsSplitter::default()),
            #[cfg(not(feature = "bedrock"))]
            Self::AwsEvents => Kind::Unknown,
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
    #[cfg(feature = "bedrock")]
    Aws(aws::AwsSplitter),
    #[cfg(not(feature = "bedrock"))]
    Unknown,
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
            #[cfg(feature = "bedrock")]
            Kind::Aws(splitter) => splitter.push(bytes, take),
            #[cfg(not(feature = "bedrock"))]
            Kind::Unknown => Err(Error::config("AWS's event streams cannot be read: enable the feature 'bedrock'")),
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
            // A frame that was cut says nothing.
            #[cfg(feature = "bedrock")]
            Kind::Aws(_) => Ok(()),
            #[cfg(not(feature = "bedrock"))]
            Kind::Unknown => Ok(()),
        }
    }
}

/// The events with these data as they travel, for tests of codecs. Those of AWS need the feature `bedrock`.
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

/// The most bytes of one event, if nothing else was said.
const LONGEST: usize = 16 << 20;

fn too_long(longest: usize) -> Error {
    let message = format!("an event of the stream is longer than {longest} bytes");
    Error::new(ErrorKind::Protocol, message).with_retry(Retry::Permanent)
}
