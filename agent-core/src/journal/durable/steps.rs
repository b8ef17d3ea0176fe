//! The steps of one attempt at a tree of runs.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::{Durable, Embedded, KeptValue, ServedEnd, ServedRun, Step, StepBody, StepKind, StepResult};
use crate::{
    error::Result,
    state::{Answer, Question},
};

/// Executes the steps of one attempt at a tree of runs, and gives each step the same name as in
/// earlier attempts. Cheap to clone; all clones share the same data.
#[derive(Clone)]
pub struct Steps(Arc<Inner>);

struct Inner {
    engine: Arc<dyn Durable>,
    /// True if the engine persists results, so that a result must contain all changes of its step.
    keeps: bool,
    names: Mutex<HashMap<String, Numbers>>,
    order: Mutex<Order>,
    /// Held from reading a call's changes until they are persisted, so that results have a total
    /// order.
    keeping: Arc<tokio::sync::Mutex<()>>,
}

/// Number of the last change of the tree's values, and of the last change of each value.
#[derive(Default)]
struct Order {
    last: u64,
    values: HashMap<String, u64>,
}

/// Numbers of the steps of one kind.
#[derive(Default)]
struct Numbers {
    next: u32,
    /// Numbers that were given back, because their steps failed.
    free: BTreeSet<u32>,
}

/// A number that a step has from before it begins. It is given back when this is dropped, unless
/// the step succeeded.
pub(crate) struct Numbered<'a> {
    steps: &'a Steps,
    name: String,
    step: Step,
    is_kept: bool,
}

impl Numbered<'_> {
    /// The step, with its number.
    pub(crate) fn step(&self) -> &Step {
        &self.step
    }

    /// The step has a result: the next one of its kind has another number.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Numbered<'_> {
    fn drop(&mut self) {
        if !self.is_kept
            && self.steps.0.keeps
            && let Some(numbers) = lock(&self.steps.0.names).get_mut(&self.name)
        {
            numbers.free.insert(self.step.n);
        }
    }
}

impl Default for Steps {
    fn default() -> Self {
        // It is stateless, so all runs can share it.
        static EMBEDDED: LazyLock<Steps> = LazyLock::new(|| Steps::of(Arc::new(Embedded::default()), false));
        EMBEDDED.clone()
    }
}

impl Steps {
    /// Creates the steps of a new attempt, with an engine that persists results.
    pub fn new(engine: Arc<dyn Durable>) -> Self {
        Self::of(engine, true)
    }

    /// Creates the steps of runs whose engine persists nothing.
    pub(crate) fn of(engine: Arc<dyn Durable>, keeps: bool) -> Self {
        let (names, order, keeping) = (Mutex::default(), Mutex::default(), Arc::default());
        Self(Arc::new(Inner { engine, keeps, names, order, keeping }))
    }

    /// True if the engine persists results, and drives runs again from their beginning.
    pub fn keeps(&self) -> bool {
        self.0.keeps
    }

    /// The engine of the steps.
    pub fn engine(&self) -> &Arc<dyn Durable> {
        &self.0.engine
    }

    /// Executes a step of the run.
    ///
    /// # Errors
    /// Those of [`Durable::step`].
    pub async fn make(&self, run: &Arc<str>, kind: StepKind, body: StepBody<'_>) -> Result<StepResult> {
        self.named(run, kind, async |step| self.0.engine.step(step, body).await).await
    }

    /// Waits for the answer to a question of the run. After a rejected answer the next call waits
    /// for another one.
    ///
    /// # Errors
    /// Those of [`Durable::answer`].
    pub async fn answer(&self, run: &Arc<str>, question: &Question) -> Result<Answer> {
        let kind = StepKind::Answer { question: question.id.clone() };
        self.named(run, kind, async |step| self.0.engine.answer(step, question).await).await
    }

    /// Waits until the paused run is resumed.
    ///
    /// # Errors
    /// Those of [`Durable::paused`].
    pub async fn paused(&self, run: &Arc<str>) -> Result<()> {
        self.named(run, StepKind::Pause, async |step| self.0.engine.paused(step).await).await
    }

    /// Sleeps for `time`, under a name that is scoped to the run.
    ///
    /// # Errors
    /// Those of [`Durable::sleep`].
    pub async fn sleep(&self, run: &Arc<str>, name: &str, time: Duration) -> Result<()> {
        let kind = StepKind::Sleep { name: name.to_owned() };
        self.named(run, kind, async |step| self.0.engine.sleep(step, time).await).await
    }

    /// Starts a remote run and waits for its end.
    ///
    /// # Errors
    /// Those of [`Durable::served`].
    pub async fn served(&self, caller: &Arc<str>, run: &ServedRun) -> Result<ServedEnd> {
        let kind = StepKind::Served { session: run.session.clone(), run: run.run.clone() };
        self.named(caller, kind, async |step| self.0.engine.served(step, run).await).await
    }

    /// Calls `make` with the named step. If `make` succeeds, the next step of the same kind gets
    /// another name.
    pub(crate) async fn named<T>(
        &self,
        run: &Arc<str>,
        kind: StepKind,
        make: impl AsyncFnOnce(&Step) -> Result<T>,
    ) -> Result<T> {
        let numbered = self.number(run, kind);
        let result = make(numbered.step()).await?;
        numbered.keep();
        Ok(result)
    }

    /// Reserves the number of a step, which steps of the same kind that begin meanwhile do not get.
    pub(crate) fn number(&self, run: &Arc<str>, kind: StepKind) -> Numbered<'_> {
        let (mut name, mut n) = (String::new(), 0);
        if self.0.keeps {
            name = format!("{run}/{kind}");
            let mut names = lock(&self.0.names);
            let numbers = names.entry(name.clone()).or_default();
            n = numbers.free.pop_first().unwrap_or(numbers.next);
            numbers.next = numbers.next.max(n + 1);
        }
        Numbered { steps: self, name, step: Step { run: run.clone(), kind, n }, is_kept: false }
    }

    /// Prevents other calls of the tree from persisting changes until the guard is dropped.
    pub(crate) async fn keep_alone(&self) -> OwnedMutexGuard<()> {
        self.0.keeping.clone().lock_owned().await
    }

    /// Numbers these changed values for persistence. The `scope` is a run id, or the storage that
    /// all runs share.
    pub(crate) fn kept(
        &self,
        scope: &str,
        values: impl IntoIterator<Item = (String, Option<Value>)>,
    ) -> BTreeMap<String, KeptValue> {
        let mut order = lock(&self.0.order);
        let kept = values.into_iter().map(|(name, value)| {
            let order = order.advance(format!("{scope}/{name}"));
            (name, KeptValue { value, order })
        });
        kept.collect()
    }

    /// Records that these values changed in `scope`.
    pub(crate) fn changed<'a>(&self, scope: &str, names: impl Iterator<Item = &'a String>) {
        if self.0.keeps {
            let mut order = lock(&self.0.order);
            names.for_each(|name| _ = order.advance(format!("{scope}/{name}")));
        }
    }

    /// Filters `values` to those that are newer than the tree's.
    pub(crate) fn newer<'a>(
        &'a self,
        scope: &'a str,
        values: BTreeMap<String, KeptValue>,
    ) -> impl Iterator<Item = (String, Option<Value>)> + 'a {
        values.into_iter().filter_map(move |(name, kept)| {
            let is_newer = lock(&self.0.order).reach(format!("{scope}/{name}"), kept.order);
            is_newer.then_some((name, kept.value))
        })
    }
}

impl Order {
    fn advance(&mut self, value: String) -> u64 {
        self.last += 1;
        self.values.insert(value, self.last);
        self.last
    }

    /// True if `order` is not older than the value's last change.
    fn reach(&mut self, value: String, order: u64) -> bool {
        self.last = self.last.max(order);
        let last = self.values.entry(value).or_default();
        let is_newer = order >= *last;
        *last = (*last).max(order);
        is_newer
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").field("keeps", &self.0.keeps).finish_non_exhaustive()
    }
}
