//! Conformance suite for middleware.

mod drive;
mod scene;

use std::{fmt, sync::Arc};

use agent_core::{Middleware, Question, RunRequest, testing::HookTrace};
use serde_json::Value;

use self::{
    drive::{Moment, drive},
    scene::{Outcome, Scene, Stack},
};
use crate::Agent;

/// User message of the runs.
const TASK: &str = "What is 6 x 7?";

/// Conformance suite for middleware: repeatedly runs an agent with the middleware, a model, a tool
/// that succeeds, one that fails and one that asks a question, both undisturbed and disturbed. It
/// checks that:
///
/// * A streamed response and a complete response lead to the same result.
/// * A call that is retried outside of the middleware leads to the same result as one that
///   succeeded at once.
/// * A run that is cancelled or paused at any await point ends soon, and when another process
///   resumes it, it ends like an undisturbed run.
/// * A run that waited for an answer ends like one that had the answer from the start.
/// * A run that is dropped at any await point leaves nothing behind that other runs could observe.
/// * Sequential and concurrent runs do not affect each other.
/// * Nothing of a run is retained after its end, as far as it holds the run's context or
///   [`observe`](Self::observe) shows it.
/// * A middleware that declares no chunk hook has none.
///
/// A middleware declared as [`transparent`](Self::transparent) must also change nothing: model,
/// tools, neighbours and callers observe the same as without it.
///
/// ```
/// use agent_core::{Middleware, PerRun, Result, RunCx, RunEnd, async_trait};
/// use agent_exec::testing::Conformance;
/// use std::time::Instant;
///
/// /// Says how long runs take.
/// #[derive(Default)]
/// struct Timed(PerRun<Instant>);
///
/// #[async_trait]
/// impl Middleware for Timed {
///     async fn before_agent(&self, cx: &RunCx) -> Result<()> {
///         self.0.of(cx, Instant::now);
///         Ok(())
///     }
///
///     async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
///         if let Some(begun) = self.0.end(cx) {
///             println!("{:?}", begun.elapsed());
///         }
///         Ok(())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// Conformance::new(Timed::default).transparent().check().await?;
/// # Ok::<(), agent_exec::testing::Violation>(()) }).unwrap();
/// ```
pub struct Conformance<M> {
    make: Arc<dyn Fn() -> M + Send + Sync>,
    answer: Arc<dyn Fn(&Question) -> Value + Send + Sync>,
    observe: Option<Arc<Observe<M>>>,
    transparent: bool,
    answers_failures: bool,
}

/// Shows what of a middleware must stay the same.
type Observe<M> = dyn Fn(&M) -> String + Send + Sync;

/// A violated claim of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The claim that does not hold.
    pub claim: String,
    /// Expected and observed values.
    pub details: String,
}

impl<M: Middleware> Conformance<M> {
    /// Checks the middlewares that `make` returns: each process of a run gets its own.
    pub fn new(make: impl Fn() -> M + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(make),
            answer: Arc::new(|_| Value::Bool(true)),
            observe: None,
            transparent: false,
            answers_failures: false,
        }
    }

    /// Also checks that the middleware changes nothing.
    #[must_use]
    pub fn transparent(mut self) -> Self {
        self.transparent = true;
        self
    }

    /// Declares that the middleware turns tool failures into answers, so that outer layers cannot
    /// retry such calls.
    #[must_use]
    pub fn answers_failures(mut self) -> Self {
        self.answers_failures = true;
        self
    }

    /// Sets the answers to its questions. Default: `true`.
    #[must_use]
    pub fn answers(mut self, answer: impl Fn(&Question) -> Value + Send + Sync + 'static) -> Self {
        self.answer = Arc::new(answer);
        self
    }

    /// Sets what of the middleware must be the same after its runs as before, such as the number of
    /// runs that it knows. Leave out values that it keeps over runs on purpose, and secrets: a
    /// violation shows both values.
    ///
    /// ```
    /// use agent_exec::testing::Conformance;
    /// # #[derive(Default)]
    /// # struct Quota { in_progress: std::sync::Mutex<Vec<u64>> }
    /// # impl agent_core::Middleware for Quota {}
    ///
    /// let check = Conformance::new(Quota::default).observe(|quota| quota.in_progress.lock().unwrap().len());
    /// # let _ = check;
    /// ```
    #[must_use]
    pub fn observe<T: fmt::Debug>(mut self, observe: impl Fn(&M) -> T + Send + Sync + 'static) -> Self {
        self.observe = Some(Arc::new(move |middleware| format!("{:?}", observe(middleware))));
        self
    }

    /// Runs the checks. Pause the time (`start_paused`), since some waits are long.
    ///
    /// # Errors
    /// The first claim that does not hold.
    pub async fn check(&self) -> Result<(), Violation> {
        if self.transparent {
            self.changes_nothing().await?;
        }
        let whole = self.outcome(&Scene::new()).await?;
        let streamed = self.outcome(&Scene::new().streaming()).await?;
        same("what is streamed and what is said at once come to the same", &whole.end, &streamed.end)?;
        let retried = self.outcome(&Scene::new().failing_once(!self.answers_failures)).await?;
        same("calls that are tried again come to the same", &whole.end, &retried.end)?;
        let asked = self.outcome(&Scene::new().asking()).await?;
        same("a run that waited for an answer ends as one that knew it", &whole.end, &asked.end)?;
        self.keeps_nothing(&whole).await?;
        self.is_disturbed(&whole).await
    }

    /// Drives an undisturbed run.
    async fn outcome(&self, scene: &Scene) -> Result<Outcome, Violation> {
        let agents = || self.agent(scene);
        let end = drive(agents, RunRequest::user(TASK), &*self.answer, Moment::Never).await;
        Ok(scene.outcome(end.map_err(|details| violation("an undisturbed run comes to its end", details))?))
    }

    fn agent(&self, scene: &Scene) -> Agent {
        scene.agent(Stack::alone(Arc::new((self.make)())))
    }

    async fn changes_nothing(&self) -> Result<(), Violation> {
        for streaming in [false, true] {
            let scene = || if streaming { Scene::new().streaming() } else { Scene::new() };
            let (without, with) = (scene(), scene());
            let end = drive(|| without.agent(Stack::default()), RunRequest::user(TASK), &*self.answer, Moment::Never);
            let plain = without.outcome(end.await.map_err(|e| violation("the scene itself plays", e))?);
            let seen = self.outcome(&with).await?;
            same("model and tools see the same as without it", &plain.seen, &seen.seen)?;
            same("the run ends as without it", &plain.end, &seen.end)?;
            let (alone, among) = (HookTrace::new("outer"), HookTrace::new("outer"));
            let subject: Arc<dyn Middleware> = Arc::new((self.make)());
            for (trace, between) in [(&alone, None), (&among, Some(subject))] {
                let agent = scene().agent(Stack::between(trace.clone(), between, trace.beside("inner")));
                let end = drive(|| agent.clone(), RunRequest::user(TASK), &*self.answer, Moment::Never).await;
                end.map_err(|e| violation("neighbours are not disturbed", e))?;
            }
            same("neighbours are not disturbed", &alone.seen(), &among.seen())?;
        }
        Ok(())
    }

    /// Drives runs sequentially and concurrently with one middleware value.
    async fn keeps_nothing(&self, whole: &Outcome) -> Result<(), Violation> {
        let (scene, middleware) = (Scene::new(), Arc::new((self.make)()));
        let observed = |middleware: &M| self.observe.as_ref().map(|observe| observe(middleware));
        let fresh = observed(&middleware);
        let agent = scene.agent(Stack::alone(middleware.clone()));
        let run = async |message: String| {
            drive(|| agent.clone(), RunRequest::user(message), &*self.answer, Moment::Never).await
        };
        for _ in 0..2 {
            let end = run(TASK.to_owned()).await;
            let end = end.map_err(|e| violation("a second run goes as the first", e))?;
            let outcome = scene.outcome(end);
            same("a second run goes as the first", &whole.end, &outcome.end)?;
            same("a second run sees nothing of the first", &whole.seen, &outcome.seen)?;
        }
        let messages = (0..8).map(|n| format!("What is {n} x 7?"));
        let ends = futures::future::join_all(messages.clone().map(run)).await;
        for (message, end) in messages.zip(ends) {
            let outcome = scene.outcome(end.map_err(|e| violation("runs at once do not disturb each other", e))?);
            let expected = |line: &String| line.replace(TASK, &message);
            let (end, seen) = (expected(&whole.end), whole.seen.iter().map(expected).collect::<Vec<_>>());
            same("runs at once do not disturb each other", &end, &outcome.end)?;
            same("runs at once do not mix", &seen, &outcome.seen)?;
        }
        drop(agent);
        scene.settle().await;
        same("nothing is kept of a run that is over", &fresh, &observed(&middleware))?;
        match scene.living_runs() {
            0 => Ok(()),
            n => Err(violation("it does not hold on to runs that are over", format!("{n} runs are still known"))),
        }
    }

    /// Cancels, pauses and drops runs at every await point.
    async fn is_disturbed(&self, whole: &Outcome) -> Result<(), Violation> {
        for what in [Moment::Cancel, Moment::Pause] {
            for at in 0.. {
                let scene = Scene::new();
                let agents = || self.agent(&scene);
                let moment = what(at);
                let driven = drive(agents, RunRequest::user(TASK), &*self.answer, moment).await;
                let claim = format!("a run goes on after {moment:?}");
                let driven = driven.map_err(|details| violation(&claim, details))?;
                let (undisturbed, outcome) = (!driven.disturbed, scene.outcome(driven));
                same(&claim, &whole.end, &outcome.end)?;
                if undisturbed {
                    break;
                }
            }
        }
        for at in 0.. {
            let (scene, middleware) = (Scene::new(), Arc::new((self.make)()));
            let agent = scene.agent(Stack::alone(middleware));
            let dropped = drive(|| agent.clone(), RunRequest::user(TASK), &*self.answer, Moment::Drop(at)).await;
            if dropped.is_ok_and(|driven| !driven.disturbed) {
                return Ok(());
            }
            scene.settle().await;
            let claim = format!("a run goes as ever when another was dropped at await {at}");
            let end = drive(|| agent.clone(), RunRequest::user(TASK), &*self.answer, Moment::Never).await;
            let outcome = scene.outcome(end.map_err(|e| violation(&claim, e))?);
            same(&claim, &whole.end, &outcome.end)?;
            same(&claim, &whole.seen, &outcome.seen)?;
        }
        Ok(())
    }
}

fn violation(claim: &str, details: impl Into<String>) -> Violation {
    Violation { claim: claim.to_owned(), details: details.into() }
}

fn same<T: PartialEq + fmt::Debug>(claim: &str, expected: &T, seen: &T) -> Result<(), Violation> {
    if expected == seen {
        return Ok(());
    }
    let (expected, seen) = (format!("{expected:#?}"), format!("{seen:#?}"));
    let (mut expected, mut seen) = (expected.lines(), seen.lines());
    let differ = std::iter::from_fn(|| Some((expected.next(), seen.next()))).find(|(expected, seen)| expected != seen);
    let (expected, seen) = differ.unwrap_or_default();
    let line = |line: Option<&str>| line.unwrap_or("nothing").trim().to_owned();
    Err(violation(claim, format!("first difference:\nexpected {}\nseen {}", line(expected), line(seen))))
}

impl<M> Clone for Conformance<M> {
    fn clone(&self) -> Self {
        Self {
            make: self.make.clone(),
            answer: self.answer.clone(),
            observe: self.observe.clone(),
            transparent: self.transparent,
            answers_failures: self.answers_failures,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it does not hold that {}: {}", self.claim, self.details)
    }
}

impl std::error::Error for Violation {}

impl<M> fmt::Debug for Conformance<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conformance").field("transparent", &self.transparent).finish_non_exhaustive()
    }
}
