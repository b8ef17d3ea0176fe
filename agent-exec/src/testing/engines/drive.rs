//! Drives runs in processes that die, and answers their questions.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{
    Finished, GlobalStorage, Key, Message, Middleware, Question, Result, RunCx, RunEnd, RunRequest, async_trait,
    engine::ServedEnd, testing::Processes,
};
use agent_dispatch::Job;
use futures::{StreamExt, stream};
use serde_json::Value;

use super::EngineWorld;
use crate::{Agent, AgentBuilder};

/// A step at which a process dies, and whether the step's result is persisted.
pub(super) type Death = (u64, bool);

/// Name of the agent that is tested.
pub(super) const AGENT: &str = "boss";

pub(super) fn job(request: RunRequest) -> Job {
    Job::new(AGENT, &request.session("s")).expect("is data")
}

pub(super) fn first_job() -> Job {
    job(RunRequest::user("go").run_id("r"))
}

/// Middleware that records how a run ended.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Option<(Finished, GlobalStorage)>>>);

impl Witness {
    /// Builds the agent with this witness.
    pub(super) fn sees(&self, agent: AgentBuilder) -> Agent {
        agent.middleware(self.clone()).build().expect("builds")
    }

    fn end(&self) -> Option<(Finished, GlobalStorage)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the end of the run that ended last.
    pub(super) fn finished(&self) -> Finished {
        self.end().expect("a run ended").0
    }

    /// Returns the tool results of that run, as texts.
    pub(super) fn results(&self) -> Vec<String> {
        let history = self.finished().history;
        history.iter().filter(|message| matches!(message, Message::Tool(_))).map(Message::text).collect()
    }

    /// Returns a value of the shared storage at that end.
    pub(super) fn counted(&self, key: &Key<u32>) -> u32 {
        self.end().expect("a run ended").1.get(key).expect("is a number").unwrap_or_default()
    }
}

#[async_trait]
impl Middleware for Witness {
    fn name(&self) -> &str {
        "witness"
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if let Ok(RunEnd::Finished(finished)) = end {
            let seen = ((**finished).clone(), cx.globals().clone());
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        }
        Ok(())
    }
}

/// Outcome of a driven run.
pub(super) struct Driven {
    pub(super) end: ServedEnd,
    /// Number of processes that died.
    pub(super) died: usize,
    /// Number of times that each question had to be answered.
    pub(super) asked: BTreeMap<String, u32>,
}

/// Drives a run in processes that die at these steps, one after the other, and then in one that
/// survives. `answer` receives each question with the number of times that it was asked before; if
/// it returns `None`, the question stays open.
pub(super) async fn drive<W: EngineWorld>(
    world: &W,
    processes: &Processes,
    agent: impl Fn() -> Agent,
    job: &Job,
    deaths: &[Death],
    answer: impl Fn(&Question, u32) -> Option<Value>,
) -> Driven {
    let mut asked = BTreeMap::new();
    let answering = async || loop {
        let question = world.asked(&job.at, 1).await.remove(0);
        let times = asked.entry(question.id.clone()).or_default();
        let Some(answer) = answer(&question, *times) else { return std::future::pending().await };
        *times += 1;
        world.answer(&job.at, vec![(question, answer)]).await;
    };
    let driven = drive_beside(world, processes, agent, job, deaths, answering).await;
    Driven { asked, ..driven }
}

/// As [`drive`], with the caller answering.
pub(super) async fn drive_unanswered<W: EngineWorld>(
    world: &W,
    processes: &Processes,
    agent: impl Fn() -> Agent,
    job: &Job,
    deaths: &[Death],
) -> Driven {
    drive_beside(world, processes, agent, job, deaths, std::future::pending).await
}

/// As [`drive`], while another future that never ends is polled next to each process.
async fn drive_beside<W: EngineWorld>(
    world: &W,
    processes: &Processes,
    agent: impl Fn() -> Agent,
    job: &Job,
    deaths: &[Death],
    mut beside: impl AsyncFnMut() -> Option<Result<ServedEnd>>,
) -> Driven {
    let mut died = 0;
    let mortal = deaths.iter().map(|(step, keeps)| processes.dying_at(*step, *keeps));
    for process in mortal.chain([processes.lasting()]) {
        let driven = tokio::select! {
            biased;
            driven = world.drive(agent(), job, &process) => driven,
            never = beside() => never,
        };
        match driven {
            Some(end) => return Driven { end: end.expect("it does not fail"), died, asked: BTreeMap::new() },
            None => died += 1,
        }
    }
    unreachable!("the last process does not die")
}

/// Answers no question.
pub(super) fn nobody(_: &Question, _: u32) -> Option<Value> {
    None
}

/// Runs a check in fresh worlds, each with its deaths.
pub(super) async fn in_worlds<W: EngineWorld>(
    deaths: impl IntoIterator<Item = Vec<Death>>,
    claim: impl AsyncFn(W, Vec<Death>),
) {
    let claim = &claim;
    let in_a_world = |deaths| async move {
        if let Some(world) = W::new().await {
            claim(world, deaths).await;
        }
    };
    let side_by_side = if W::REAL_TIME { 8 } else { 1 };
    stream::iter(deaths).map(in_a_world).buffer_unordered(side_by_side).collect::<()>().await;
}

/// Returns single deaths: one at each of `steps` steps, before and after the result is persisted.
pub(super) fn one_death(steps: usize) -> impl Iterator<Item = Vec<Death>> {
    (1..=steps as u64).flat_map(|step| [vec![(step, false)], vec![(step, true)]])
}
