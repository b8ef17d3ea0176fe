//! Recording and replaying of HTTP exchanges with providers.

mod builder;
mod diff;
mod exchange;
mod layout;
mod matching;
mod scrub;
mod session;
mod tape;
mod tee;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use agent_core::{Result, async_trait};
use bytes::Bytes;
use http::{Request, Response};

pub use self::builder::{CassetteBuilder, CassetteMode};
use self::session::Session;
use crate::{Body, Transport};

/// A [`Transport`] that records exchanges into a file and replays them from it, for tests against
/// real models without their cost, latency and randomness. Cheap to clone; clones share the tape.
///
/// # Matching of requests
///
/// A request gets the first recorded answer to an equal request that was not replayed yet. Requests
/// are equal if their method, URL and body are equal: JSON by value, regardless of the order of
/// fields, without [ignored](CassetteBuilder::ignore) fields. Headers do not matter. Concurrent
/// calls therefore find their answers in any order.
///
/// A request without an answer fails with [`NonDeterminism`](agent_core::ErrorKind::NonDeterminism)
/// and a diff against the most similar request. [`assert_finished`](Self::assert_finished) also
/// reports such requests, even if the error was swallowed, and recorded answers that no request
/// used.
///
/// # Tape format
///
/// Readable JSON, one value per line, in the order in which requests began; meant to be checked in.
/// Streams are kept chunk by chunk, and break off where the original broke off. An answer is
/// written once it is complete or was dropped; a request without any answer is not written.
///
/// Secrets are redacted: no request headers are written, and of the response headers only harmless
/// ones. The keys in the request's headers and URL are redacted everywhere, even if a body repeats
/// them across two chunks, as are texts that look like keys of well-known services, and fields such
/// as `password` and `access_token`. Register other secrets with
/// [`secret`](CassetteBuilder::secret) and [`secret_field`](CassetteBuilder::secret_field).
///
/// # Example
///
/// In a test, [`open`](Self::open) replays by default, and records if the environment variable says
/// so:
///
/// ```no_run
/// use agent_llm::Cassette;
///
/// let tape = Cassette::open("tests/tapes/hello.json")?;
/// let key = std::env::var("OPENAI_API_KEY").unwrap_or_default();
/// let model = agent_llm::model("openai:gpt-5").api_key(key).transport(tape.clone()).build()?;
/// // .. the test ..
/// tape.assert_finished();
/// # Ok::<(), agent_core::Error>(())
/// ```
///
/// Recorded once with `AGENT_CASSETTE=all OPENAI_API_KEY=.. cargo test hello`, the test needs
/// neither key nor network from then on.
#[derive(Clone)]
pub struct Cassette(Arc<Session>);

impl Cassette {
    /// Returns a builder for the cassette in the file `path`.
    pub fn builder(path: impl AsRef<Path>) -> CassetteBuilder {
        CassetteBuilder::new(PathBuf::from(path.as_ref()))
    }

    /// Opens the cassette in the file `path`, in the mode that the environment variable
    /// `AGENT_CASSETTE` selects: see [`CassetteMode`].
    ///
    /// # Errors
    /// As [`CassetteBuilder::build`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).build()
    }

    /// Opens the file `path` for replay only.
    ///
    /// # Errors
    /// As [`CassetteBuilder::build`].
    pub fn replay(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).mode(CassetteMode::Replay).build()
    }

    /// Records all exchanges through `inner` into the file `path`, from scratch.
    ///
    /// # Errors
    /// As [`CassetteBuilder::build`]. If the file cannot be written later, the exchange fails.
    pub fn record(path: impl AsRef<Path>, inner: impl Transport) -> Result<Self> {
        Self::builder(path).mode(CassetteMode::RecordAll).transport(inner).build()
    }

    /// Returns the mode.
    pub fn mode(&self) -> CassetteMode {
        self.0.mode()
    }

    /// Returns the number of recorded answers that were not replayed yet.
    pub fn left(&self) -> usize {
        self.0.left().len()
    }

    /// Asserts that every request had an answer, and that every recorded answer was used.
    ///
    /// # Panics
    /// If not, listing the requests in question.
    pub fn assert_finished(&self) {
        let (unexpected, left) = (self.0.unexpected(), self.0.left());
        assert!(unexpected.is_empty(), "requests without an answer:\n{}", unexpected.join("\n"));
        assert!(left.is_empty(), "recorded answers that nobody asked for:\n  {}", left.join("\n  "));
    }
}

#[async_trait]
impl Transport for Cassette {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        self.0.send(request).await
    }
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cassette").field("path", &self.0.path()).field("mode", &self.mode()).finish_non_exhaustive()
    }
}
