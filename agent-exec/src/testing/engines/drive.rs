//! Runs in processes that die, with somebody who answers what they ask.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{
    Finished, GlobalStorage, Key, Message, Middleware, Question, Result, RunCx, RunEnd, RunRequest, async_trait,
    dispatch::Job, engine::ServedEnd, testing::Processes,
};
use futures::{StreamExt, stream};
use serde_json::Value;

use super::EngineWorld;
use crate::{Agent, AgentBuilder};

/// A step at which a process dies, and whether the step's result is kept.
pub(super) type Death = (u64, bool);

/// The run that a claim is about.
pub(super) const AGENT: &str = "boss";

pub(super) fn job(request: RunRequest) -> Job {
    Job::new(AGENT, &request.session("s")).expect("is data")
}

pub(super) fn first_job() -> Job {
    job(RunRequest::user("go").run_id("r"))
}

/// Sees how a run ended, from within.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Option<(Finished, GlobalStorage)>>>);

impl Witness {
    /// The agent, seen by this witness.
    pub(super) fn sees(&self, agent: AgentBuilder) -> Agent {
        agent.middleware(self.clone()).build().expect("builds")
    }

    fn end(&self) -> Option<(Finished, GlobalStorage)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How the run ended that ended last.
    pub(super) fn finished(&self) -> Finished {
        self.end().expect("a run ended").0
    }

    /// What the tools of that run gave, as texts.
    pub(super) fn results(&self) -> Vec<String> {
        let history = self.finished().history;
        history.iter().filter(|message| matches!(message, Message::Tool(_))).map(Message::text).collect()
    }

    /// A value of the shared storage at that end.
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

/// How a run went.
pub(super) struct Driven {
    pub(super) end: ServedEnd,
    /// How many processes died.
    pub(super) died: usize,
    /// How often somebody had to answer each question.
    pub(super) asked: BTreeMap<String, u32>,
}

/// Drives a run in processes that die at these of their steps, one after the other, and then in one that does not. Somebody answers what it
/// asks, with the number of times that it asked that before; without an answer, nobody does.
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

/// The same, where whoever calls this answers.
pub(super) async fn drive_unanswered<W: EngineWorld>(
    world: &W,
    processes: &Processes,
    agent: impl Fn() -> Agent,
    job: &Job,
    deaths: &[Death],
) -> Driven {
    drive_beside(world, processes, agent, job, deaths, std::future::pending).await
}

/// The same, while something goes on beside each process, and does not end.
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

/// Nobody answers.
pub(super) fn nobody(_: &Question, _: u32) -> Option<Value> {
    None
}

/// Puts a claim to fresh worlds, each with its deaths.
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

/// One death, at each of so many steps, before the result is kept and after.
pub(super) fn one_death(steps: usize) -> impl Iterator<Item = Vec<Death>> {
    (1..=steps as u64).flat_map(|step| [vec![(step, false)], vec![(step, true)]])
}
