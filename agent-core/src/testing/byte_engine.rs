//! An engine that keeps the steps of runs as bytes, and whose processes die.

use std::{
    collections::BTreeMap,
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Error, ErrorKind, Result},
    journal::{Durable, ServedEnd, ServedRun, Step, StepBody, StepKind, StepResult},
    state::{Answer, Question, new_id},
};

/// What an engine keeps of runs: the result of each step by its name, as bytes. Each process that drives a run has an
/// [attempt](Self::attempt) of its own. Cheap to clone; all clones are one.
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
    /// Somebody asked or answered.
    changed: Notify,
}

#[derive(Default)]
struct Kept {
    results: BTreeMap<String, Vec<u8>>,
    answers: BTreeMap<String, Answer>,
    asked: Vec<Question>,
    /// Runs of agents that are served elsewhere, by their ids, and how those ended that are over.
    served: BTreeMap<String, (ServedRun, Option<ServedEnd>)>,
}

impl ByteEngine {
    /// A process that drives runs from their beginning, and does not die.
    pub fn attempt(&self) -> ByteAttempt {
        let (engine, nonce, left) = (self.clone(), new_id(), Arc::default());
        ByteAttempt { engine, nonce, left, dead: CancellationToken::new() }
    }

    /// Gives the answer to the question `id` of a run: whoever waits for it goes on.
    pub fn answer(&self, id: impl Into<String>, answer: impl Into<Answer>) {
        self.lock().answers.insert(id.into(), answer.into());
        self.0.changed.notify_waiters();
    }

    /// Waits for a question that has no answer.
    pub async fn asked(&self) -> Question {
        self.find(|kept| kept.asked.iter().find(|asked| !kept.answers.contains_key(&asked.id)).cloned()).await
    }

    /// Waits for a run of an agent that is served elsewhere, and is not over.
    pub async fn called(&self) -> ServedRun {
        let find = |kept: &Kept| kept.served.values().find(|(_, end)| end.is_none()).map(|(run, _)| run.clone());
        self.find(find).await
    }

    /// Ends the run of this id, which is served elsewhere: whoever waits for it goes on.
    pub fn end(&self, run: &str, end: ServedEnd) {
        if let Some((_, ended)) = self.lock().served.get_mut(run) {
            *ended = Some(end);
        }
        self.0.changed.notify_waiters();
    }

    /// What `find` finds, as soon as it does.
    async fn find<T>(&self, find: impl Fn(&Kept) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable(); // what changes from now on is not missed
            if let Some(found) = find(&self.lock()) {
                return found;
            }
            changed.await;
        }
    }

    /// The names of the steps that are kept, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().results.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a process dies.
#[derive(Clone, Copy)]
struct Death {
    steps: u64,
    keeps_last: bool,
}

/// One process of a [`ByteEngine`].
#[derive(Clone)]
pub struct ByteAttempt {
    engine: ByteEngine,
    nonce: String,
    /// How many steps are left to it; none if it does not die.
    left: Arc<Mutex<Option<Death>>>,
    dead: CancellationToken,
}

impl ByteAttempt {
    /// Dies when the body of its new step number `step` is done, counted from 1: before the result is kept, or after it if it
    /// `keeps_last`. Nothing goes on after it, and [`died`](Self::died) tells.
    #[must_use]
    pub fn dying_at(self, step: u64, keeps_last: bool) -> Self {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(Death { steps: step, keeps_last });
        self
    }

    /// Waits until it is dead.
    pub async fn died(&self) {
        self.dead.cancelled().await;
    }

    /// The kept result of the name, or that of `make`, which is kept.
    async fn keep<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        if self.dead.is_cancelled() {
            std::future::pending::<()>().await;
        }
        let kept = self.engine.lock().results.get(name).cloned();
        if let Some(kept) = kept {
            return serde_json::from_slice(&kept).map_err(|e| broken(name).with_source(e));
        }
        let made = make.await?;
        let (dies, keeps) = self.count();
        let bytes = serde_json::to_vec(&made).map_err(|e| broken(name).with_source(e))?;
        if keeps {
            self.engine.lock().results.insert(name.to_owned(), bytes.clone());
        }
        if dies {
            self.dead.cancel();
        }
        if self.dead.is_cancelled() {
            std::future::pending::<()>().await;
        }
        serde_json::from_slice(&bytes).map_err(|e| broken(name).with_source(e))
    }

    /// Counts a step; whether the process dies of it, and whether it is kept.
    fn count(&self) -> (bool, bool) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match left.as_mut() {
            _ if self.dead.is_cancelled() => (true, false),
            None => (false, true),
            Some(death) => {
                death.steps = death.steps.saturating_sub(1);
                (death.steps == 0, death.steps > 0 || death.keeps_last)
            }
        }
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

    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.keep(&step.name(), body).await
    }

    async fn child(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.keep(&step.name(), body).await
    }

    async fn answer(&self, step: &Step, question: &Question) -> Result<Answer> {
        let answer = async {
            self.engine.lock().asked.push(question.clone());
            self.engine.0.changed.notify_waiters();
            let given = self.engine.find(|kept| kept.answers.get(&question.id).cloned()).await;
            let mut kept = self.engine.lock();
            kept.answers.remove(&question.id); // another wait is for another answer
            kept.asked.retain(|asked| asked.id != question.id);
            Ok(given)
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

    async fn sleep(&self, step: &Step, time: std::time::Duration) -> Result<()> {
        debug_assert!(matches!(step.kind, StepKind::Sleep { .. }), "{step:?}");
        let slept = async {
            tokio::time::sleep(time).await;
            Ok(())
        };
        self.keep(&step.name(), slept).await
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
