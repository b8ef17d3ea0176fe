//! Durable engine for tests that serialises step results.

use std::{
    collections::BTreeMap,
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::Notify, time::Instant};

use crate::{
    error::{Error, ErrorKind, Result},
    journal::{Durable, Journal, ServedEnd, ServedRun, Step, StepBody, StepResult},
    state::{Answer, Question, new_id},
};

/// In-memory durable engine: stores the result of each step by its name, serialised to bytes. Each
/// process that drives a run has a separate [attempt](Self::attempt);
/// [`Processes`](super::Processes) simulate crashes. Cheap to clone; all clones share the same
/// data.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_core::{engine::{Durable, Step, StepKind, StepResult}, testing::ByteEngine};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (engine, run) = (ByteEngine::default(), Arc::<str>::from("r"));
/// let count = |said: &'static str| {
///     let (attempt, run) = (engine.attempt(), run.clone());
///     async move {
///         let steps = agent_core::engine::Steps::new(Arc::new(attempt));
///         let body = Box::pin(async move { Ok(StepResult::Messages(vec![agent_core::Message::user(said)])) });
///         steps.make(&run, StepKind::Steering { step: 0 }, body).await
///     }
/// };
/// let first = count("one").await?;
/// assert_eq!(count("two").await?, first);
/// # Ok::<(), agent_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct ByteEngine(Arc<Shared>);

#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    /// Notified when a question is asked or answered, or a run pauses or resumes.
    changed: Notify,
}

#[derive(Default)]
struct Kept {
    results: BTreeMap<String, Vec<u8>>,
    answers: BTreeMap<String, Answer>,
    asked: Vec<Question>,
    /// Remote runs by id, with their ends once they have ended.
    served: BTreeMap<String, (ServedRun, Option<ServedEnd>)>,
    /// Wake-up times of sleeping steps, by name.
    sleeps: BTreeMap<String, Instant>,
    /// True while a run is paused.
    rests: bool,
}

impl ByteEngine {
    /// Creates an attempt: a process that drives runs from their beginning.
    pub fn attempt(&self) -> ByteAttempt {
        ByteAttempt { engine: self.clone(), nonce: new_id(), session: None }
    }

    /// Answers the question `id` of a run, and wakes the waiting step.
    pub fn answer(&self, id: impl Into<String>, answer: impl Into<Answer>) {
        self.lock().answers.insert(id.into(), answer.into());
        self.0.changed.notify_waiters();
    }

    /// Waits until `count` questions are unanswered, and returns them.
    pub async fn asked(&self, count: usize) -> Vec<Question> {
        self.find(|kept| {
            let open = kept.asked.iter().filter(|asked| !kept.answers.contains_key(&asked.id));
            let open: Vec<_> = open.take(count).cloned().collect();
            (open.len() == count).then_some(open)
        })
        .await
    }

    /// Waits for a remote run that has not ended, and returns it.
    pub async fn called(&self) -> ServedRun {
        let find = |kept: &Kept| kept.served.values().find(|(_, end)| end.is_none()).map(|(run, _)| run.clone());
        self.find(find).await
    }

    /// Ends the remote run with this id, and wakes the waiting step.
    pub fn end(&self, run: &str, end: ServedEnd) {
        if let Some((_, ended)) = self.lock().served.get_mut(run) {
            *ended = Some(end);
        }
        self.0.changed.notify_waiters();
    }

    /// Waits until a run is paused.
    pub async fn rests(&self) {
        self.find(|kept| kept.rests.then_some(())).await;
    }

    /// Resumes the paused run.
    pub fn go_on(&self) {
        self.lock().rests = false;
        self.0.changed.notify_waiters();
    }

    /// Waits until `find` returns a value.
    async fn find<T>(&self, find: impl Fn(&Kept) -> Option<T>) -> T {
        self.take(|kept| find(kept)).await
    }

    /// Waits until `take` returns a value.
    async fn take<T>(&self, take: impl Fn(&mut Kept) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable(); // changes from now on are noticed
            if let Some(found) = take(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }

    /// The names of the persisted steps, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().results.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One attempt (process) of a [`ByteEngine`].
#[derive(Clone)]
pub struct ByteAttempt {
    engine: ByteEngine,
    nonce: String,
    session: Option<Arc<dyn Journal>>,
}

impl ByteAttempt {
    /// Sets the journal of the run's session: as of the run's beginning, in every attempt. Default:
    /// none.
    #[must_use]
    pub fn in_session(mut self, journal: impl Journal) -> Self {
        self.session = Some(Arc::new(journal));
        self
    }

    /// Returns the stored result under `name`, or stores and returns the result of `make`.
    async fn keep<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let kept = self.engine.lock().results.get(name).cloned();
        let bytes = match kept {
            Some(kept) => kept,
            None => {
                let made = serde_json::to_vec(&make.await?).map_err(|e| broken(name).with_source(e))?;
                self.engine.lock().results.insert(name.to_owned(), made.clone());
                made
            }
        };
        serde_json::from_slice(&bytes).map_err(|e| broken(name).with_source(e))
    }
}

fn broken(name: &str) -> Error {
    Error::new(ErrorKind::Store, format!("the result of step '{name}' is not what was written"))
}

#[async_trait]
impl Durable for ByteAttempt {
    fn attempt(&self) -> &str {
        &self.nonce
    }

    fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.session.clone()
    }

    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.keep(&step.name(), body).await
    }

    async fn child(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.keep(&step.name(), body).await
    }

    async fn answer(&self, step: &Step, question: &Question) -> Result<Answer> {
        let answer = async {
            let _asks = Asks::new(&self.engine, question);
            // A later wait needs another answer.
            Ok(self.engine.take(|kept| kept.answers.remove(&question.id)).await)
        };
        self.keep(&step.name(), answer).await
    }

    async fn served(&self, step: &Step, run: &ServedRun) -> Result<ServedEnd> {
        let end = async {
            self.engine.lock().served.entry(run.run.to_string()).or_insert_with(|| (run.clone(), None));
            self.engine.0.changed.notify_waiters();
            Ok(self.engine.find(|kept| kept.served.get(&*run.run)?.1.clone()).await)
        };
        self.keep(&step.name(), end).await
    }

    async fn paused(&self, step: &Step) -> Result<()> {
        let goes_on = async {
            self.engine.lock().rests = true;
            self.engine.0.changed.notify_waiters();
            self.engine.find(|kept| (!kept.rests).then_some(())).await;
            Ok(())
        };
        self.keep(&step.name(), goes_on).await
    }

    async fn sleep(&self, step: &Step, time: Duration) -> Result<()> {
        let slept = async {
            let until = *self.engine.lock().sleeps.entry(step.name()).or_insert_with(|| Instant::now() + time);
            tokio::time::sleep_until(until).await;
            Ok(())
        };
        self.keep(&step.name(), slept).await
    }
}

/// Registers a question as open until dropped.
struct Asks<'a> {
    engine: &'a ByteEngine,
    id: &'a str,
}

impl<'a> Asks<'a> {
    fn new(engine: &'a ByteEngine, question: &'a Question) -> Self {
        engine.lock().asked.push(question.clone());
        engine.0.changed.notify_waiters();
        Self { engine, id: &question.id }
    }
}

impl Drop for Asks<'_> {
    fn drop(&mut self) {
        self.engine.lock().asked.retain(|asked| asked.id != self.id);
    }
}

impl fmt::Debug for ByteEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteEngine").field("steps", &self.names()).finish()
    }
}

impl fmt::Debug for ByteAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteAttempt").field("nonce", &self.nonce).finish_non_exhaustive()
    }
}
