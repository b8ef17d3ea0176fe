//! Recording what a model's provider says, and saying it again without a network.

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

/// A [`Transport`] that records exchanges into a file and replays them from it: for tests of real models without their
/// cost, speed and moods. Cheap to clone; clones share the tape.
///
/// # Which answer a request gets
///
/// The first on the tape that was recorded for an equal request and not given yet. Requests are equal if their method, their
/// address and their body are: JSON by its value, whatever the order of fields, without what is
/// [ignored](CassetteBuilder::ignore). Headers do not matter. So calls that run side by side find their answers in any order.
///
/// A request without an answer fails with [`NonDeterminism`](agent_core::ErrorKind::NonDeterminism) and with how it differs
/// from the most similar one. [`assert_finished`](Self::assert_finished) finds such requests too, wherever the error went, and
/// answers that nobody asked for.
///
/// # What is on the tape
///
/// JSON that people can read, one value a line, in the order in which requests began: it is meant to be checked in. Streams
/// are kept chunk by chunk, and break off where they did. An answer is written when it is complete, or was dropped; a request
/// that had no answer at all is not.
///
/// Secrets are not written: no request headers, of the answer's headers only harmless ones. The keys of the request's headers
/// and address are taken out everywhere, also where a body repeats them in two chunks, and so are texts that look like the
/// keys of well-known services, and fields such as `password` and `access_token`. Name what else is secret with
/// [`secret`](CassetteBuilder::secret) and [`secret_field`](CassetteBuilder::secret_field).
///
/// # Example
///
/// In a test, [`open`](Self::open) replays, and records when the environment says so:
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
/// Recorded once with `AGENT_CASSETTE=all OPENAI_API_KEY=.. cargo test hello`, it needs neither key nor network from then on.
#[derive(Clone)]
pub struct Cassette(Arc<Session>);

impl Cassette {
    /// Sets up a cassette in the file `path`.
    pub fn builder(path: impl AsRef<Path>) -> CassetteBuilder {
        CassetteBuilder::new(PathBuf::from(path.as_ref()))
    }

    /// Replays the file `path`, or records it, as the environment variable `AGENT_CASSETTE` says: see [`CassetteMode`].
    ///
    /// # Errors
    /// As [`CassetteBuilder::build`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).build()
    }

    /// Replays the file `path`, and nothing else.
    ///
    /// # Errors
    /// As [`CassetteBuilder::build`].
    pub fn replay(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).mode(CassetteMode::Replay).build()
    }

    /// Records everything that goes through `inner` into the file `path`, anew.
    ///
    /// # Errors
    /// As [`CassetteBuilder::build`]. If the file cannot be written later, the exchange fails.
    pub fn record(path: impl AsRef<Path>, inner: impl Transport) -> Result<Self> {
        Self::builder(path).mode(CassetteMode::RecordAll).transport(inner).build()
    }

    /// Whether it replays or records.
    pub fn mode(&self) -> CassetteMode {
        self.0.mode()
    }

    /// How many recorded answers were not given yet.
    pub fn left(&self) -> usize {
        self.0.left().len()
    }

    /// Checks that every request had its answer, and that all that was recorded was asked for.
    ///
    /// # Panics
    /// If not, with the requests in question.
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
