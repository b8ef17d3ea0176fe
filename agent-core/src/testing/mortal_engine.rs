//! A durable engine with simulated crashes.

use std::{
    collections::BTreeSet,
    fmt,
    future::pending,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{
    error::Result,
    journal::{Durable, Journal, ServedEnd, ServedRun, Step, StepBody, StepResult},
    state::{Answer, Question},
};

/// Time until a process crashes during a wait: long enough that the engine has registered the wait.
const WAITS: Duration = Duration::from_millis(20);

/// The processes that drive runs one after the other, over any engine, and crash at a given step.
/// Cheap to clone; all clones share the same data.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_core::{engine::{StepKind, StepResult, Steps}, testing::{ByteEngine, Processes}};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (processes, kept) = (Processes::default(), ByteEngine::default());
/// let process = processes.dying_at(1, true);
/// let steps = Steps::new(process.engine(Arc::new(kept.attempt())));
/// let (run, body) = ("r".into(), Box::pin(async { Ok(StepResult::Messages(vec![])) }));
/// tokio::select! {
///     _ = steps.make(&run, StepKind::Steering { step: 0 }, body) => unreachable!("it dies"),
///     () = process.died() => {}
/// }
/// assert_eq!(kept.names(), ["r/steering/0/0"], "the result is kept");
/// # Ok::<(), agent_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Processes(Arc<Mutex<BTreeSet<String>>>);

/// One process of [`Processes`]. Cheap to clone; all clones share the same data.
#[derive(Clone)]
pub struct MortalProcess {
    processes: Processes,
    death: Arc<Mutex<Option<Death>>>,
    dead: CancellationToken,
}

/// Scheduled crash of a process.
#[derive(Clone, Copy)]
struct Death {
    /// Number of new steps left.
    steps: u64,
    keeps_last: bool,
}

/// Fate of the process at a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lives,
    DiesBefore,
    DiesAfter,
}

impl Processes {
    /// Creates a process that does not crash.
    pub fn lasting(&self) -> MortalProcess {
        self.process(None)
    }

    /// Creates a process that crashes at its new step number `step`, counted from 1; a new step has
    /// no result from an earlier process. The crash happens when the step's body has completed,
    /// before the engine has the result, or after that with `keeps_last`; a wait has begun, or has
    /// ended. Nothing continues afterwards, and [`died`](MortalProcess::died) resolves.
    pub fn dying_at(&self, step: u64, keeps_last: bool) -> MortalProcess {
        self.process(Some(Death { steps: step, keeps_last }))
    }

    fn process(&self, death: Option<Death>) -> MortalProcess {
        let death = Arc::new(Mutex::new(death));
        MortalProcess { processes: self.clone(), death, dead: CancellationToken::new() }
    }

    /// The names of the steps that completed in any process, sorted.
    pub fn steps(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MortalProcess {
    /// Wraps the engine for this process.
    pub fn engine(&self, engine: Arc<dyn Durable>) -> Arc<dyn Durable> {
        Arc::new(MortalEngine { engine, process: self.clone() })
    }

    /// Waits until the process has crashed.
    pub async fn died(&self) {
        self.dead.cancelled().await;
    }

    /// Counts a step, and returns the fate of the process at it.
    fn comes_to(&self, name: &str) -> Fate {
        let mut death = self.death.lock().unwrap_or_else(PoisonError::into_inner);
        match death.as_mut() {
            Some(death) if !self.processes.lock().contains(name) => {
                death.steps = death.steps.saturating_sub(1);
                match (death.steps, death.keeps_last) {
                    (0, true) => Fate::DiesAfter,
                    (0, false) => Fate::DiesBefore,
                    _ => Fate::Lives,
                }
            }
            _ => Fate::Lives,
        }
    }

    /// Records a result, unless the process has crashed.
    async fn has<T>(&self, name: String, result: T, fate: Fate) -> T {
        self.lives().await;
        self.processes.lock().insert(name);
        match fate {
            Fate::DiesAfter => self.dies().await,
            _ => result,
        }
    }

    async fn dies<T>(&self) -> T {
        self.dead.cancel();
        pending().await
    }

    /// Continues only if the process has not crashed.
    async fn lives(&self) {
        if self.dead.is_cancelled() {
            pending::<()>().await;
        }
    }
}

/// The engine as a crashing process sees it.
struct MortalEngine {
    engine: Arc<dyn Durable>,
    process: MortalProcess,
}

impl MortalEngine {
    /// Wraps the body, at whose end the process may crash.
    fn body<'a>(&'a self, name: &'a str, body: StepBody<'a>, fate: &'a Mutex<Fate>) -> StepBody<'a> {
        Box::pin(async move {
            let made = body.await?;
            self.process.lives().await;
            let comes = self.process.comes_to(name);
            if comes == Fate::DiesBefore {
                return self.process.dies().await;
            }
            *fate.lock().unwrap_or_else(PoisonError::into_inner) = comes;
            Ok(made)
        })
    }

    /// Awaits `wait`, unless the process crashes meanwhile.
    async fn waits<T>(&self, name: String, wait: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.process.lives().await;
        let (fate, mut wait) = (self.process.comes_to(&name), pin!(wait));
        if fate == Fate::DiesBefore {
            _ = tokio::time::timeout(WAITS, wait.as_mut()).await;
            return self.process.dies().await; // keeps `wait` alive: a crashed process cancels nothing
        }
        let given = wait.await?;
        Ok(self.process.has(name, given, fate).await)
    }
}

#[async_trait]
impl Durable for MortalEngine {
    fn attempt(&self) -> &str {
        self.engine.attempt()
    }

    fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.engine.journal()
    }

    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.process.lives().await;
        let (name, fate) = (step.name(), Mutex::new(Fate::Lives));
        let result = self.engine.step(step, self.body(&name, body, &fate)).await?;
        let fate = fate.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(self.process.has(name, result, fate).await)
    }

    async fn child(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.process.lives().await;
        let (name, fate) = (step.name(), Mutex::new(Fate::Lives));
        let result = self.engine.child(step, self.body(&name, body, &fate)).await?;
        let fate = fate.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(self.process.has(name, result, fate).await)
    }

    async fn answer(&self, step: &Step, question: &Question) -> Result<Answer> {
        self.waits(step.name(), self.engine.answer(step, question)).await
    }

    async fn paused(&self, step: &Step) -> Result<()> {
        self.waits(step.name(), self.engine.paused(step)).await
    }

    async fn served(&self, step: &Step, run: &ServedRun) -> Result<ServedEnd> {
        self.waits(step.name(), self.engine.served(step, run)).await
    }

    async fn sleep(&self, step: &Step, time: Duration) -> Result<()> {
        self.waits(step.name(), self.engine.sleep(step, time)).await
    }
}

impl fmt::Debug for MortalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MortalProcess").field("is_dead", &self.dead.is_cancelled()).finish_non_exhaustive()
    }
}
