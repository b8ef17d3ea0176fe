//! One attempt at a tree of runs, as its engine knows it.

use std::{
    collections::{BTreeMap, HashMap},
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

/// The steps of one attempt at a tree of runs: each gets a name that it had in the attempts before. Cheap to clone; all clones
/// are one.
#[derive(Clone)]
pub struct Steps(Arc<Inner>);

struct Inner {
    engine: Arc<dyn Durable>,
    /// True if the engine keeps results itself, so that a result must hold all that its step changed.
    keeps: bool,
    names: Mutex<HashMap<String, u32>>,
    order: Mutex<Order>,
    /// Held from when a call's changes are looked at until they are kept: results have one order.
    keeping: Arc<tokio::sync::Mutex<()>>,
}

/// Which change of the tree's values was the last, and the last of each value.
#[derive(Default)]
struct Order {
    last: u64,
    values: HashMap<String, u64>,
}

impl Default for Steps {
    fn default() -> Self {
        // Nothing of it changes, so that all runs may have the same.
        static EMBEDDED: LazyLock<Steps> = LazyLock::new(|| Steps::of(Arc::new(Embedded::default()), false));
        EMBEDDED.clone()
    }
}

impl Steps {
    /// Those of a new attempt, with an engine that keeps results.
    pub fn new(engine: Arc<dyn Durable>) -> Self {
        Self::of(engine, true)
    }

    /// Those of runs whose engine keeps nothing.
    pub(crate) fn of(engine: Arc<dyn Durable>, keeps: bool) -> Self {
        let (names, order, keeping) = (Mutex::default(), Mutex::default(), Arc::default());
        Self(Arc::new(Inner { engine, keeps, names, order, keeping }))
    }

    /// True if the engine keeps results itself, and drives runs again from their beginning.
    pub fn keeps(&self) -> bool {
        self.0.keeps
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<dyn Durable> {
        &self.0.engine
    }

    /// Makes a step of the run.
    ///
    /// # Errors
    /// As [`Durable::step`].
    pub async fn make(&self, run: &Arc<str>, kind: StepKind, body: StepBody<'_>) -> Result<StepResult> {
        self.named(run, kind, async |step| self.0.engine.step(step, body).await).await
    }

    /// Waits for the answer to a question of the run. One that was refused is asked for again.
    ///
    /// # Errors
    /// As [`Durable::answer`].
    pub async fn answer(&self, run: &Arc<str>, question: &Question) -> Result<Answer> {
        let kind = StepKind::Answer { question: question.id.clone() };
        self.named(run, kind, async |step| self.0.engine.answer(step, question).await).await
    }

    /// Waits until the run, which was paused, is to go on.
    ///
    /// # Errors
    /// As [`Durable::paused`].
    pub async fn paused(&self, run: &Arc<str>) -> Result<()> {
        self.named(run, StepKind::Pause, async |step| self.0.engine.paused(step).await).await
    }

    /// Waits for this time, under a name of the run.
    ///
    /// # Errors
    /// As [`Durable::sleep`].
    pub async fn sleep(&self, run: &Arc<str>, name: &str, time: Duration) -> Result<()> {
        let kind = StepKind::Sleep { name: name.to_owned() };
        self.named(run, kind, async |step| self.0.engine.sleep(step, time).await).await
    }

    /// Has a run driven elsewhere, and waits for its end.
    ///
    /// # Errors
    /// As [`Durable::served`].
    pub async fn served(&self, caller: &Arc<str>, run: &ServedRun) -> Result<ServedEnd> {
        let kind = StepKind::Served { session: run.session.clone(), run: run.run.clone() };
        self.named(caller, kind, async |step| self.0.engine.served(step, run).await).await
    }

    /// Hands `make` the step with its name. If that comes to a result, the next one of the kind has another name.
    pub(crate) async fn named<T>(
        &self,
        run: &Arc<str>,
        kind: StepKind,
        make: impl AsyncFnOnce(&Step) -> Result<T>,
    ) -> Result<T> {
        if !self.0.keeps {
            return make(&Step { run: run.clone(), kind, n: 0 }).await;
        }
        let name = format!("{run}/{kind}");
        let n = self.kept_before(run, &kind);
        let result = make(&Step { run: run.clone(), kind, n }).await?;
        lock(&self.0.names).insert(name, n + 1);
        Ok(result)
    }

    /// How many steps of the run that are the same otherwise were kept in this attempt.
    pub(crate) fn kept_before(&self, run: &str, kind: &StepKind) -> u32 {
        match self.0.keeps {
            true => lock(&self.0.names).get(&format!("{run}/{kind}")).copied().unwrap_or_default(),
            false => 0,
        }
    }

    /// Lets no other call of the tree keep its changes until the guard is dropped.
    pub(crate) async fn keep_alone(&self) -> OwnedMutexGuard<()> {
        self.0.keeping.clone().lock_owned().await
    }

    /// The values as they are kept now, in `scope`: a run, or the storage that all share.
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

    /// Notes that these values changed in `scope`.
    pub(crate) fn changed<'a>(&self, scope: &str, names: impl Iterator<Item = &'a String>) {
        if self.0.keeps {
            let mut order = lock(&self.0.order);
            names.for_each(|name| _ = order.advance(format!("{scope}/{name}")));
        }
    }

    /// Those of `values` that are newer than what the tree has.
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
