//! A model with scripted replies.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{Seen, Turn};
use crate::{
    error::{Error, ErrorKind, Result, Retry},
    llm::{Chunk, ChunkSink, Collector, ModelInfo, ModelResponse},
    message::AssistantMessage,
    model::{Model, ModelRequest},
};

/// A model that replies with the turns of a script, in order: an unexpected request fails, and
/// [`assert_finished`](Self::assert_finished) reports unused turns.
///
/// Clones share the script. Chunks go through the request's sink even if no stream was requested.
///
/// ```
/// use agent_core::{History, Message, Model, ModelRequest, testing::{ScriptedModel, Turn, detached_run}};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = ScriptedModel::new([Turn::text("Good morning.")]);
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
///
/// let reply = model.call(ModelRequest::new(run.cx().clone())).await?;
///
/// assert_eq!(reply.message.text(), "Good morning.");
/// assert_eq!(model.requests()[0].texts(), ["hello"]);
/// model.assert_finished();
/// # Ok::<(), agent_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    script: Arc<Mutex<Script>>,
    info: ModelInfo,
}

#[derive(Debug, Default)]
struct Script {
    turns: VecDeque<Turn>,
    seen: Vec<Seen>,
    unexpected: Vec<String>,
    open: usize,
    peak: usize,
}

impl ScriptedModel {
    /// Creates a model that replies with these turns.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let script = Script { turns: turns.into_iter().collect(), ..Script::default() };
        Self { script: Arc::new(Mutex::new(script)), info: ModelInfo::new("scripted") }
    }

    /// Sets the info of the model. Default: the name `scripted`.
    #[must_use]
    pub fn with_info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }

    /// The requests of all calls so far, including rejected ones.
    pub fn requests(&self) -> Vec<Seen> {
        self.script().seen.clone()
    }

    /// The number of calls so far.
    pub fn calls(&self) -> usize {
        self.script().seen.len()
    }

    /// Number of running calls; a dropped call no longer counts.
    pub fn open(&self) -> usize {
        self.script().open
    }

    /// Maximum number of concurrent calls so far.
    pub fn peak(&self) -> usize {
        self.script().peak
    }

    /// Asserts that the script was followed to its end.
    ///
    /// # Panics
    /// If turns are left, or if a request did not match the script, even if its error was ignored.
    pub fn assert_finished(&self) {
        let script = self.script();
        let (made, left) = (script.seen.len(), &script.turns);
        assert!(script.unexpected.is_empty(), "the script was not followed: {}", script.unexpected.join("; "));
        assert!(left.is_empty(), "after {made} calls, {} turns of the script are left over: {left:?}", left.len());
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn for a request, if it matches.
    fn take(&self, seen: Seen) -> Result<Turn> {
        let mut script = self.script();
        let call = script.seen.len() + 1;
        let verdict = match script.turns.pop_front() {
            Some(turn) => match turn.check(&seen) {
                Ok(()) => Ok(turn),
                Err(reason) => Err(format!("the script expected another request (call {call}): {reason}")),
            },
            None => {
                let newest = seen.messages.last();
                let newest = newest.map_or("no messages".to_owned(), |m| format!("{}: {:?}", m.role(), m.text()));
                Err(format!("the script has no turn for this request (call {call}): it ends with {newest}"))
            }
        };
        script.seen.push(seen);
        verdict.map_err(|message| {
            script.unexpected.push(message.clone());
            Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent)
        })
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let _open = Open::enter(self);
        let turn = self.take(Seen::of(&req))?;
        let pause = async || {
            if let Some(delay) = turn.delay {
                tokio::time::sleep(delay).await;
            }
        };
        let mut collector = Collector::new(&req.sink);
        for chunk in word_by_word(&turn.message)? {
            pause().await;
            collector.push(chunk)?;
        }
        if let Some(failure) = &turn.failure {
            pause().await;
            return Err(failure());
        }
        let mut response = ModelResponse::new(collector.finish(turn.message)).with_usage(turn.usage);
        response.finish = turn.finish.unwrap_or(response.finish);
        response.model = Some(self.info.name.as_str().into());
        Ok(response)
    }
}

/// Splits a message into the chunks of a stream, its text word by word.
fn word_by_word(message: &AssistantMessage) -> Result<Vec<Chunk>> {
    let whole = Arc::new(Mutex::new(Vec::new()));
    let seen = whole.clone();
    let sink = ChunkSink::default()
        .with_observer(move |chunk| seen.lock().unwrap_or_else(PoisonError::into_inner).push(chunk.clone()));
    sink.collect(message.clone())?;
    let whole = std::mem::take(&mut *whole.lock().unwrap_or_else(PoisonError::into_inner));
    let words = |chunk| match chunk {
        Chunk::Text { index, delta } => {
            delta.split_inclusive(' ').map(|word| Chunk::Text { index, delta: word.to_owned() }).collect()
        }
        other => vec![other],
    };
    Ok(whole.into_iter().flat_map(words).collect())
}

/// Counts a call as running until dropped.
struct Open<'a>(&'a ScriptedModel);

impl<'a> Open<'a> {
    fn enter(model: &'a ScriptedModel) -> Self {
        let mut script = model.script();
        script.open += 1;
        script.peak = script.peak.max(script.open);
        Self(model)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.script().open -= 1;
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.script();
        f.debug_struct("ScriptedModel")
            .field("name", &self.info.name)
            .field("calls", &script.seen.len())
            .field("left", &script.turns.len())
            .field("open", &script.open)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{history::History, message::Message, testing::detached_run};

    fn request() -> ModelRequest {
        let history = History::from_messages([Message::user("hello")]).expect("paired");
        ModelRequest::new(detached_run(history).cx().clone())
    }

    #[tokio::test]
    async fn text_and_calls_of_one_turn_are_one_message_streamed_word_by_word() {
        let model = ScriptedModel::new([Turn::text("let me see").and_call("c1", "look", json!({"at": 1}))]);
        let chunks = Arc::new(Mutex::new(Vec::new()));
        let (mut req, seen) = (request(), chunks.clone());
        req.sink = req.sink.with_observer(move |c| seen.lock().expect("free").push(c.clone()));
        let reply = model.call(req).await.expect("replies");
        assert_eq!((reply.message.text().as_str(), reply.message.calls().count()), ("let me see", 1));
        let texts: Vec<_> = chunks.lock().expect("free").clone();
        let texts: Vec<_> = texts
            .into_iter()
            .filter_map(|c| match c {
                Chunk::Text { delta, .. } => Some(delta),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["let ", "me ", "see"]);
    }

    #[tokio::test]
    async fn a_request_beyond_the_script_fails_for_good_and_is_not_forgotten() {
        let model = ScriptedModel::new([]);
        let e = model.call(request()).await.expect_err("no turn");
        assert_eq!((e.kind(), e.retry()), (ErrorKind::InvalidRequest, Retry::Permanent));
        assert!(e.message().starts_with("the script has no turn for this request (call 1):"), "{e}");
        let panic = std::panic::catch_unwind(|| model.assert_finished()).expect_err("panics");
        assert!(panic.downcast_ref::<String>().expect("a message").contains("no turn for this request"));
    }

    #[tokio::test]
    async fn an_unexpected_request_fails_with_the_reason() {
        let model = ScriptedModel::new([Turn::text("x").expect(|seen| match seen.texts()[..] {
            [ref one] if one == "goodbye" => Ok(()),
            _ => Err(format!("wanted goodbye, got {:?}", seen.texts())),
        })]);
        let e = model.call(request()).await.expect_err("unexpected");
        assert!(e.message().ends_with(r#"wanted goodbye, got ["hello"]"#), "{e}");
    }

    #[test]
    #[should_panic(expected = "after 0 calls, 1 turns of the script are left over")]
    fn turns_that_nobody_asked_for_are_found() {
        ScriptedModel::new([Turn::text("unused")]).assert_finished();
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_call_is_no_longer_open_and_the_peak_remains() {
        let slow = Turn::text("a b c").delay(Duration::from_secs(1));
        let model = ScriptedModel::new([slow.clone(), slow]);
        let both = async { tokio::join!(model.call(request()), model.call(request())) };
        let cut = tokio::time::timeout(Duration::from_millis(1500), async {
            tokio::join!(both, async { assert_eq!(model.open(), 2) })
        });
        assert!(cut.await.is_err(), "three words take three seconds");
        assert_eq!((model.open(), model.peak(), model.calls()), (0, 2, 2));
    }

    #[tokio::test]
    async fn a_turn_that_breaks_off_has_spoken_before_it_fails() {
        let model = ScriptedModel::new([Turn::text("half an")
            .then_fail(|| Error::new(ErrorKind::Truncated, "cut").with_retry(Retry::Temporary(None)))]);
        let count = Arc::new(Mutex::new(0));
        let (mut req, seen) = (request(), count.clone());
        req.sink = req.sink.with_observer(move |_| *seen.lock().expect("free") += 1);
        assert_eq!(model.call(req).await.expect_err("breaks off").kind(), ErrorKind::Truncated);
        assert_eq!(*count.lock().expect("free"), 3, "two words and the end of the block");
    }

    #[tokio::test]
    async fn the_sink_can_end_the_call_and_change_what_is_said() {
        let model = ScriptedModel::new([Turn::text("secret word"), Turn::text("secret word")]);
        let mut req = request();
        req.sink = req.sink.with(|_| Err(Error::new(ErrorKind::ContentFiltered, "no")));
        assert_eq!(model.call(req).await.expect_err("ended").kind(), ErrorKind::ContentFiltered);
        let mut req = request();
        req.sink =
            req.sink.with(|c| Ok(Some(c).filter(|c| !matches!(c, Chunk::Text { delta, .. } if delta == "secret "))));
        assert_eq!(model.call(req).await.expect("replies").message.text(), "word");
    }
}
