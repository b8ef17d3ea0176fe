//! Drives an agent through crashes, cancellations, pauses and faults to its end.

use std::{fmt, panic::AssertUnwindSafe, time::Duration};

use agent_core::{
    BoxError, Checkpoint, Error, ErrorKind, Finished, Question, Result, RunEnd, RunRequest,
    testing::{Faults, SeededRng},
    tool::Doubt,
};
use futures::FutureExt;
use serde_json::Value;

use super::{World, invariants};
use crate::Agent;

/// Session of every simulated run.
pub(super) const SESSION: &str = "simulated";

/// Number of processes that are disturbed; later processes are left alone, and the run must end.
const TROUBLED: u32 = 12;

/// A simulated run with fault injection: models and tools fail, stall and return garbage, processes
/// die between any two journal entries and at any moment, and the run is cancelled and paused. The
/// seed decides all of it, including the order of concurrent events; the clock is paused, so an
/// hour takes no time.
///
/// [`run`](Self::run) resumes the run, process after process, until it is finished, and then checks
/// the invariants: the conversation is paired, the journal agrees with the run's end, no effect is
/// silently repeated, usage adds up, and the run ends. Wherever it stops on its way, its checkpoint
/// equals the state in its journal.
///
/// ```
/// use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
/// use agent_exec::{Agent, testing::Simulation};
/// use serde_json::json;
///
/// struct Pay;
///
/// #[async_trait]
/// impl Tool for Pay {
///     fn spec(&self) -> ToolSpec {
///         ToolSpec::new("pay", "Pays.", json!({"type": "object", "properties": {"amount": {"type": "integer"}}}))
///     }
///
///     async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
///         Ok(ToolOutput::text(format!("paid {}", req.args["amount"])))
///     }
/// }
///
/// for seed in 0..10 {
///     let simulated = Simulation::new(seed)
///         .run(|world| Agent::builder("payer", world.model()).tool(world.tool(Pay)).store(world.journal()).build())
///         .map_err(|e| format!("seed {seed}: {e}"))?;
///     assert!(simulated.finished.is_none_or(|end| end.answer == "done"));
/// }
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    rng: SeededRng,
    fault_percent: u64,
    faults: u64,
}

/// Outcome of a simulated run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Simulated {
    /// The run's end; `None` if its process died after the end was written but before it was
    /// returned.
    pub finished: Option<Finished>,
    /// Number of processes.
    pub processes: u32,
    /// Number of processes that died.
    pub crashes: u32,
    /// Number of cancellations and pauses.
    pub stops: u32,
    /// Number of failures after which the run was resumed.
    pub failures: u32,
    /// Number of faults of models and tools.
    pub faults: u64,
    /// Number of answered questions.
    pub questions: u32,
    /// Number of effects on the outside world.
    pub deeds: usize,
    /// The journal at the end, one line per entry, with ids replaced by their indices: equal for
    /// equal seeds.
    pub trace: Vec<String>,
}

/// A violated invariant.
#[derive(Debug)]
#[non_exhaustive]
pub struct Broken {
    /// Description of the violation.
    pub reason: String,
    /// As [`Simulated::trace`].
    pub trace: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Broken {}

/// Disturbance of a process.
#[derive(Clone, Copy)]
enum Trouble {
    None,
    DiesAtEntry(u64),
    DiesAfter(Duration),
    CancelledAfter(Duration),
    PausedAfter(Duration),
}

/// The end of a process.
enum End {
    Died,
    Came(Result<RunEnd>),
}

impl Simulation {
    /// Creates a simulation with this seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: SeededRng::new(seed), fault_percent: 15, faults: 12 }
    }

    /// Sets the percentage of calls to models and tools that fail, and the maximum number of
    /// faults. Default: 15 percent, at most 12 faults.
    #[must_use]
    pub fn faults(mut self, percent: u64, at_most: u64) -> Self {
        (self.fault_percent, self.faults) = (percent, at_most);
        self
    }

    /// Runs the agent that `build` returns, built anew for each process, on one message until it is
    /// finished.
    ///
    /// Questions about calls in doubt are answered from the outside world; every other question
    /// with `true`.
    ///
    /// # Errors
    /// The violated invariant. Print it with the seed.
    ///
    /// # Panics
    /// If it is called on a tokio runtime: it creates its own.
    pub fn run(&self, build: impl Fn(&World) -> Result<Agent>) -> Result<Simulated, Broken> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without I/O needs nothing of the system");
        let faults = Faults::new(self.rng.part("faults")).percent(self.fault_percent).at_most(self.faults);
        let world = World::new(self.rng.clone(), faults);
        let mut story = Story { rng: self.rng.part("troubles"), world, build, counts: Counts::default() };
        let day = Duration::from_secs(24 * 3600);
        let run = AssertUnwindSafe(async { tokio::time::timeout(day, story.run()).await }).catch_unwind();
        let ended = match runtime.block_on(run) {
            Ok(Ok(ended)) => ended,
            Ok(Err(_)) => Err("the run does not come to its end within a day".into()),
            Err(_) => Err("it panics".into()),
        };
        let entries = runtime.block_on(invariants::entries(&story.world)).unwrap_or_default();
        let checked = ended.and_then(|finished| {
            runtime.block_on(invariants::check(&story.world, finished.as_ref(), &entries)).map(|()| finished)
        });
        let trace = invariants::trace(&entries);
        let finished = match checked {
            Ok(finished) => finished,
            Err(reason) => return Err(Broken { reason, trace }),
        };
        let (counts, world) = (story.counts, story.world);
        Ok(Simulated {
            finished,
            processes: counts.processes,
            crashes: counts.crashes,
            stops: counts.stops,
            failures: counts.failures,
            faults: world.faults.drawn(),
            questions: counts.questions,
            deeds: world.outside.deeds(),
            trace,
        })
    }
}

#[derive(Default)]
struct Counts {
    processes: u32,
    crashes: u32,
    stops: u32,
    failures: u32,
    questions: u32,
}

/// A simulation in progress.
struct Story<B> {
    rng: SeededRng,
    world: World,
    build: B,
    counts: Counts,
}

impl<B: Fn(&World) -> Result<Agent>> Story<B> {
    async fn run(&mut self) -> Result<Option<Finished>, String> {
        let mut handed_over = None;
        loop {
            if self.counts.processes > 10 * TROUBLED {
                return Err(format!("after {} processes the run is not at its end", self.counts.processes));
            }
            let trouble = self.next_trouble();
            let world = self.world.reborn(match trouble {
                Trouble::DiesAtEntry(entry) => Some(entry),
                _ => None,
            });
            let agent = (self.build)(&world).map_err(|e| format!("the agent cannot be built: {e}"))?;
            let Some(request) = self.request(&agent, handed_over.take()).await? else {
                return Ok(None);
            };
            self.counts.processes += 1;
            match live(&world, &agent, request, trouble).await {
                End::Died => {
                    self.counts.crashes += 1;
                    // The tasks that the dead process spawned must be gone: none of them may act
                    // later.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                End::Came(Ok(RunEnd::Finished(finished))) => return Ok(Some(*finished)),
                End::Came(Ok(stopped)) => {
                    self.counts.stops += u32::from(stopped.as_str() != "interrupted");
                    handed_over = stopped.checkpoint().cloned();
                    if let Some(checkpoint) = &handed_over {
                        invariants::check_checkpoint(&self.world, checkpoint).await?;
                    }
                }
                End::Came(Err(e)) => {
                    self.counts.failures += 1;
                    unless_simulated(&e)?;
                    handed_over = e.checkpoint().cloned();
                }
            }
        }
    }

    fn next_trouble(&mut self) -> Trouble {
        if self.counts.processes >= TROUBLED {
            return Trouble::None;
        }
        let time = Duration::from_millis(self.rng.below(150));
        match self.rng.below(100) {
            0..25 => Trouble::DiesAtEntry(1 + self.rng.below(30)),
            25..40 => Trouble::DiesAfter(time),
            40..50 => Trouble::CancelledAfter(time),
            50..60 => Trouble::PausedAfter(time),
            _ => Trouble::None,
        }
    }

    /// Returns how the next process starts: from the checkpoint that the last one returned, or from
    /// the journal.
    async fn request(&mut self, agent: &Agent, checkpoint: Option<Checkpoint>) -> Result<Option<RunRequest>, String> {
        let checkpoint = checkpoint.filter(|_| self.rng.chance(50));
        if let Some(checkpoint) = checkpoint {
            let checkpoint = checkpoint.to_json().and_then(|json| Checkpoint::from_json(&json));
            let checkpoint = checkpoint.map_err(|e| format!("the checkpoint is not read back: {e}"))?;
            let answers = self.answers(&checkpoint.questions);
            return Ok(Some(RunRequest::resume(checkpoint, answers)));
        }
        let stands = agent.unfinished(SESSION).await.map_err(|e| format!("the journal is not read: {e}"))?;
        if let Some(stands) = stands {
            return Ok(Some(RunRequest::recover(SESSION, self.answers(&stands.questions))));
        }
        let begun = invariants::entries(&self.world).await?;
        Ok(begun.is_empty().then(|| RunRequest::user("go").session(SESSION)))
    }

    fn answers(&mut self, questions: &[Question]) -> Vec<(String, Value)> {
        self.counts.questions += u32::try_from(questions.len()).unwrap_or(u32::MAX);
        let answer = |question: &Question| match question.kind.as_str() {
            Doubt::KIND => self.world.outside.look(question),
            _ => true.into(),
        };
        questions.iter().map(|question| (question.id.clone(), answer(question))).collect()
    }
}

/// Lets one process live until its run ends or it dies.
async fn live(world: &World, agent: &Agent, request: RunRequest, trouble: Trouble) -> End {
    let run = agent.start(request);
    let handle = run.handle();
    let trouble = async {
        match trouble {
            Trouble::None => std::future::pending().await,
            Trouble::DiesAtEntry(_) => world.journal().died().await,
            Trouble::DiesAfter(time) => tokio::time::sleep(time).await,
            Trouble::CancelledAfter(time) => {
                tokio::time::sleep(time).await;
                handle.cancel();
                std::future::pending::<()>().await;
            }
            Trouble::PausedAfter(time) => {
                tokio::time::sleep(time).await;
                handle.pause();
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        biased;
        () = trouble => End::Died,
        end = run => End::Came(end),
    }
}

/// Ignores the errors that the simulation injected.
fn unless_simulated(e: &Error) -> Result<(), String> {
    use ErrorKind::{Cancelled, Protocol, Provider, RateLimited, Timeout, Tool, Transport, Truncated};
    match e.kind() {
        Cancelled | Protocol | Provider | RateLimited | Timeout | Tool | Transport | Truncated => Ok(()),
        _ => {
            let source = std::error::Error::source(e).map(|source| BoxError::from(source.to_string()));
            Err(format!("the run failed, and no fault explains it: {e} {source:?}"))
        }
    }
}
