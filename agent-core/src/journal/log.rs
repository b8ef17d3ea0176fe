//! One run's side of the journal: the embedded engine.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::{SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use serde_json::Value;

use super::{Ack, Durable, Entry, EntryBody, JournalWriter, Step, StepBody, StepResult};
use crate::{AssistantMessage, Effect, Emitter, Error, ErrorKind, GlobalStorage, Result, State, ToolOutput};

/// Writes what one run does, and tells the readers of its events as soon as it is durable.
///
/// [`record`](Self::record) notes an entry, [`flush`](Self::flush) hands what is noted to the journal, and
/// [`commit`](Self::commit) waits until it is durable. What the state and the shared storage changed meanwhile goes into the
/// same batch, so that a step and what it changed are kept together or not at all.
#[derive(Clone)]
pub struct RunLog(Arc<Inner>);

struct Inner {
    run: Arc<str>,
    attempt: Arc<str>,
    writer: Arc<dyn JournalWriter>,
    emitter: Emitter,
    state: State,
    globals: GlobalStorage,
    buffer: Mutex<Buffer>,
    decisions: Mutex<Decisions>,
    results: Mutex<Results>,
    tool_calls: Mutex<BTreeMap<Arc<str>, u32>>,
    /// Held while acknowledgements are awaited, so that events leave in order.
    order: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Buffer {
    noted: Vec<Entry>,
    sent: VecDeque<Sent>,
}

/// A batch that the journal has and has not acknowledged; its entries are kept only if somebody watches.
struct Sent {
    ack: Ack,
    count: usize,
    entries: Option<Vec<Entry>>,
}

/// What the step under way gave before hooks saw it, so that only what they changed is written again.
#[derive(Default)]
struct Results {
    model: Option<AssistantMessage>,
    tools: HashMap<Arc<str>, ToolOutput>,
    started: HashSet<Arc<str>>,
}

/// Decisions of the step under way: those made before a restart, to be read back in order, and all made so far.
#[derive(Default)]
struct Decisions {
    kept: VecDeque<(String, Value)>,
    made: Vec<(String, Value)>,
}

impl RunLog {
    /// A log for the run `run`, whose step under way made the decisions `kept` before.
    pub fn new(
        run: Arc<str>,
        writer: Arc<dyn JournalWriter>,
        emitter: Emitter,
        state: State,
        globals: GlobalStorage,
        kept: Vec<(String, Value)>,
    ) -> Self {
        let attempt = crate::new_id().into();
        let decisions = Mutex::new(Decisions { kept: kept.into(), made: Vec::new() });
        Self(Arc::new(Inner {
            run,
            attempt,
            writer,
            emitter,
            state,
            globals,
            buffer: Mutex::default(),
            decisions,
            results: Mutex::default(),
            tool_calls: Mutex::default(),
            order: tokio::sync::Mutex::default(),
        }))
    }

    /// The writer, for the runs below.
    pub fn writer(&self) -> &Arc<dyn JournalWriter> {
        &self.0.writer
    }

    /// Notes an entry.
    pub fn record(&self, body: EntryBody) {
        self.buffer().noted.push(Entry::new(self.0.run.clone(), now(), body));
    }

    /// Hands everything noted to the journal, without waiting.
    pub fn flush(&self) {
        let (state, globals) = (self.0.state.take_changes(), self.0.globals.take_changes());
        let mut buffer = self.buffer();
        if !state.is_empty() || !globals.is_empty() {
            let body = EntryBody::StateChanged { state, globals };
            buffer.noted.push(Entry::new(self.0.run.clone(), now(), body));
        }
        if !buffer.noted.is_empty() {
            let entries = std::mem::take(&mut buffer.noted);
            let (count, watched) = (entries.len(), self.0.emitter.is_observed().then(|| entries.clone()));
            let ack = self.0.writer.append(entries);
            buffer.sent.push_back(Sent { ack, count, entries: watched });
        }
    }

    /// Hands everything noted to the journal and waits until it, and all before it, is durable.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the journal failed: the run must then not go on.
    pub async fn commit(&self) -> Result<()> {
        self.flush();
        let _in_order = self.0.order.lock().await;
        while let Some((first, sent)) = poll_fn(|cx| self.poll_sent(cx)).await? {
            self.0.emitter.committed(first, sent.entries, sent.count);
        }
        Ok(())
    }

    /// The oldest batch, when it is acknowledged. A batch stays in the queue until then, so that nothing is lost if whoever
    /// waits is dropped.
    fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<Result<Option<(u64, Sent)>>> {
        let mut buffer = self.buffer();
        let Some(oldest) = buffer.sent.front_mut() else { return Poll::Ready(Ok(None)) };
        let first = ready!(Pin::new(&mut oldest.ack).poll(cx));
        let sent = buffer.sent.pop_front();
        Poll::Ready(first.map(|first| sent.map(|sent| (first, sent))))
    }

    /// Notes the model's answer as the hooks left it.
    pub fn record_accepted(&self, step: u32, message: &AssistantMessage) {
        let finished = self.results().model.take();
        let changed = !finished.is_some_and(|finished| finished.ptr_eq(message));
        self.record(EntryBody::ModelAccepted { step, message: changed.then(|| message.clone()) });
    }

    /// Notes a call's answer as the hooks left it.
    pub fn record_answered(&self, call_id: &Arc<str>, name: &Arc<str>, output: &ToolOutput) {
        let changed = !self.results().tools.get(call_id).is_some_and(|finished| finished.ptr_eq(output));
        let output = changed.then(|| output.clone());
        self.record(EntryBody::ToolAnswered { call_id: call_id.clone(), name: name.clone(), output });
    }

    /// How often each tool was run, counting a call once however often it was tried.
    pub fn tool_calls(&self) -> BTreeMap<String, u32> {
        let counts = self.0.tool_calls.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, n)| (name.to_string(), *n)).collect()
    }

    /// Sets the counts that the run had when it was suspended.
    pub fn restore_tool_calls(&self, counts: &BTreeMap<String, u32>) {
        let counts = counts.iter().map(|(name, n)| (name.as_str().into(), *n)).collect();
        *self.0.tool_calls.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    /// Forgets the decisions and results of the step that is now complete.
    pub fn end_step(&self) {
        *self.results() = Results::default();
        *self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner) = Decisions::default();
    }

    /// The decisions of the step under way, for a checkpoint.
    pub fn decisions(&self) -> Vec<(String, Value)> {
        let decisions = self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        decisions.made.iter().chain(&decisions.kept).cloned().collect()
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.0.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a call runs; it counts if it is its first try.
    fn count(&self, call_id: &Arc<str>, name: &Arc<str>) {
        if self.results().started.insert(call_id.clone()) {
            let mut counts = self.0.tool_calls.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(name.clone()).or_default() += 1;
        }
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.0.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_decision(&self, name: &str) -> Result<Option<Value>> {
        let mut decisions = self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = decisions.kept.front() else { return Ok(None) };
        if first.0 != name {
            let message = format!("decision '{name}' stands where '{}' was made before", first.0);
            return Err(Error::new(ErrorKind::NonDeterminism, message));
        }
        let kept = decisions.kept.pop_front();
        decisions.made.extend(kept.clone());
        Ok(kept.map(|(_, value)| value))
    }
}

impl Inner {
    fn keep_decision(&self, name: &str, value: &Value) {
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        decisions.made.push((name.to_owned(), value.clone()));
    }
}

#[async_trait]
impl Durable for RunLog {
    fn attempt(&self) -> &str {
        &self.0.attempt
    }

    async fn step(&self, step: Step, body: StepBody<'_>) -> Result<StepResult> {
        match step {
            Step::Model { step } => {
                let result = body.await?;
                if let StepResult::Model(response) = &result {
                    self.results().model = Some(response.message.clone());
                    self.record(EntryBody::ModelFinished { step, response: response.clone() });
                    self.flush();
                }
                Ok(result)
            }
            Step::Tool { call_id, name, effect } => {
                self.count(&call_id, &name);
                let attempt = self.0.attempt.clone();
                self.record(EntryBody::ToolStarted { call_id: call_id.clone(), name, effect, attempt });
                match effect {
                    Effect::Pure => self.flush(),
                    _ => self.commit().await?, // the intent is durable before the effect
                }
                let result = body.await?;
                if let StepResult::Tool(output) = &result {
                    self.results().tools.insert(call_id.clone(), output.clone());
                    self.record(EntryBody::ToolFinished { call_id, output: output.clone() });
                    self.flush();
                }
                Ok(result)
            }
            Step::Named(name) => {
                if let Some(value) = self.kept_decision(&name)? {
                    return Ok(StepResult::Value(value));
                }
                let result = body.await?;
                if let StepResult::Value(value) = &result {
                    self.0.keep_decision(&name, value);
                    self.record(EntryBody::Decided { name, value: value.clone() });
                    self.commit().await?;
                }
                Ok(result)
            }
        }
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for RunLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLog").field("run", &self.0.run).finish_non_exhaustive()
    }
}
