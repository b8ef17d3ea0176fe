//! Recording what a model's provider says, and saying it again without a network.

mod diff;
mod exchange;
mod record;
mod replay;

use std::{fmt, io, path::Path, sync::Arc};

use agent_core::{Error, ErrorKind, Result, Retry, async_trait};
use bytes::Bytes;
use http::{Request, Response};

use self::{record::Recorder, replay::Replayer};
use crate::{Body, Transport};

/// A [`Transport`] that records exchanges into a file, or replays them from it: for tests of real models without their
/// cost, speed and moods.
///
/// The file holds one exchange per line, as JSON. Secrets are not written: no request headers, of the answer's headers only
/// harmless ones, and keys in addresses and bodies are taken out. Where bodies were cut into pieces is not kept.
///
/// # Example
///
/// ```
/// use agent_core::{History, Message, Model, ModelRequest, testing::detached_run};
/// use agent_llm::{Cassette, OpenAiChat, transport_fn};
/// use http::Response;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
/// # let dir = tempfile::tempdir().expect("a folder");
/// # let file = dir.path().join("hello.jsonl");
/// let ask = || Ok::<_, agent_core::Error>(detached_run(History::from_messages([Message::user("hello")])?));
///
/// let hi = r#"{"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}"#;
/// let provider = transport_fn(move |_| async move { Ok(Response::new(hi.into())) });
/// let model = OpenAiChat::builder("m").transport(Cassette::record(&file, provider)?).build()?;
/// model.call(ModelRequest::new(ask()?.cx().clone())).await?;
///
/// let tape = Cassette::replay(&file)?;
/// let model = OpenAiChat::builder("m").transport(tape.clone()).build()?;
/// let said = model.call(ModelRequest::new(ask()?.cx().clone())).await?;
/// assert_eq!(said.message.text(), "hi");
/// tape.assert_finished();
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("replays");
/// ```
#[derive(Clone)]
pub struct Cassette(Mode);

#[derive(Clone)]
enum Mode {
    Record(Arc<Recorder>),
    Replay(Arc<Replayer>),
}

impl Cassette {
    /// Records what goes through `inner` into the file `path`, which begins anew. An exchange is written when its answer
    /// is complete, or was dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be made. If it cannot be written later, the exchange fails.
    pub fn record(path: impl AsRef<Path>, inner: impl Transport) -> Result<Self> {
        let recorder = Recorder::create(path.as_ref(), Box::new(inner)).map_err(|e| failed(path.as_ref(), e))?;
        Ok(Self(Mode::Record(Arc::new(recorder))))
    }

    /// Replays the file `path`. A request gets the first answer not yet given that was recorded for an equal request;
    /// requests are equal if their method, their path and their body are, whatever the order of fields.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be read.
    pub fn replay(path: impl AsRef<Path>) -> Result<Self> {
        let replayer = Replayer::open(path.as_ref()).map_err(|e| failed(path.as_ref(), e))?;
        Ok(Self(Mode::Replay(Arc::new(replayer))))
    }

    /// How many recorded answers were not given yet; 0 while recording.
    pub fn left(&self) -> usize {
        match &self.0 {
            Mode::Record(_) => 0,
            Mode::Replay(replayer) => replayer.left(),
        }
    }

    /// Checks that all that was recorded was replayed.
    ///
    /// # Panics
    /// If recorded answers are left.
    pub fn assert_finished(&self) {
        assert_eq!(self.left(), 0, "recorded answers that nobody asked for");
    }
}

fn failed(path: &Path, e: io::Error) -> Error {
    let message = format!("the cassette '{}' cannot be used: {e}", path.display());
    Error::new(ErrorKind::Store, message).with_retry(Retry::Permanent).with_source(e)
}

#[async_trait]
impl Transport for Cassette {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        match &self.0 {
            Mode::Record(recorder) => recorder.clone().send(request).await,
            Mode::Replay(replayer) => replayer.answer(&request),
        }
    }
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, path) = match &self.0 {
            Mode::Record(recorder) => ("record", recorder.path()),
            Mode::Replay(replayer) => ("replay", replayer.path()),
        };
        f.debug_struct("Cassette").field("mode", &mode).field("path", &path).finish()
    }
}
