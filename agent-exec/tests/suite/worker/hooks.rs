//! Hooks of the process around a worker.

use std::sync::{Arc, Mutex};

use agent_core::{
    Event, MemoryJournal, Result, RunEnd, RunRequest, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_dispatch::{Job, JobStatus, JobStatusKind};
use agent_exec::{Agent, RunHandle, WorkerHooks};
use tokio::sync::Semaphore;

use super::{Shared, job};

/// Hooks that record their calls, and that let a run continue after its first entry when told so.
struct Recorded {
    calls: Mutex<Vec<String>>,
    replacement: Agent,
    gate: Semaphore,
}

impl Recorded {
    fn new(shared: &Shared, turns: impl IntoIterator<Item = Turn>) -> Arc<Self> {
        let replacement = shared.agent(turns).build().expect("builds");
        Arc::new(Self { calls: Mutex::default(), replacement, gate: Semaphore::new(0) })
    }

    fn call(&self, call: impl Into<String>) {
        self.calls.lock().expect("calls").push(call.into());
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().expect("calls").clone()
    }
}

#[async_trait]
impl WorkerHooks for Recorded {
    async fn agent(&self, _: &Job, own: &Agent) -> Result<Agent> {
        assert_eq!(own.name(), "a");
        Ok(self.replacement.clone())
    }

    fn request(&self, _: &Job, agent: &Agent, request: RunRequest) -> Result<RunRequest> {
        self.call(format!("request to {}", agent.name()));
        Ok(request)
    }

    fn run_started(&self, job: &Job, _: &RunHandle) {
        self.call(format!("started {}", job.at.run));
    }

    async fn run_begun(&self, _: &Job, first: &Event) {
        self.call(format!("begun at {}", first.position.after));
        self.gate.acquire().await.expect("it is open").forget();
    }

    fn run_dropped(&self, job: &Job) {
        self.call(format!("dropped {}", job.at.run));
    }

    async fn run_ended(&self, _: &Job, end: Arc<Result<RunEnd>>) {
        match &*end {
            Ok(RunEnd::Finished(finished)) => self.call(finished.answer.clone()),
            Ok(end) => self.call(end.as_str()),
            Err(error) => self.call(error.message()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_choose_the_agent_and_a_run_waits_for_them_after_its_first_entry() {
    let shared = Shared::default();
    let hooks = Recorded::new(&shared, [Turn::text("From the other one.")]);
    let _process = shared.start(shared.worker(shared.agent([])).hooks(hooks.clone()));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::Running).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(hooks.calls(), ["request to a", "started r", "begun at 0"], "it waits");
    hooks.gate.add_permits(1);
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(hooks.calls(), ["request to a", "started r", "begun at 0", "From the other one."]);
}

#[tokio::test(start_paused = true)]
async fn hooks_learn_of_a_run_that_could_not_start() {
    let shared = Shared::default();
    let hooks = Recorded::new(&shared, []);
    let worker = shared.worker(shared.agent([])).hooks(hooks.clone());
    let _process = shared.start(worker.shape(|_, _| Err(agent_core::Error::config("no such tool"))));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::Dead).await;
    assert_eq!(hooks.calls(), ["no such tool"]);
}

#[tokio::test(start_paused = true)]
async fn hooks_learn_of_an_attempt_that_was_dropped_with_its_worker() {
    let shared = Shared::default();
    let hooks = Recorded::new(&shared, [Turn::text("Never said.")]);
    let process = shared.start(shared.worker(shared.agent([])).hooks(hooks.clone()));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::Running).await;
    while hooks.calls().len() < 3 {
        tokio::task::yield_now().await;
    }
    process.abort();
    drop(process.await);
    while hooks.calls().len() < 4 {
        tokio::task::yield_now().await;
    }
    assert_eq!(hooks.calls(), ["request to a", "started r", "begun at 0", "dropped r"]);
}

/// Hooks that panic.
struct Panicking;

#[async_trait]
impl WorkerHooks for Panicking {
    async fn run_begun(&self, _: &Job, _: &Event) {
        panic!("the observer is broken");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_beside_a_run_makes_it_a_dead_letter_instead_of_waiting_for_its_lease() {
    let shared = Shared::default();
    let agent = Agent::builder("a", ScriptedModel::new([Turn::text("hello")])).store(MemoryJournal::default());
    let _process = shared.start(shared.worker(agent).hooks(Arc::new(Panicking)));
    let run = shared.send(job("r")).await;
    let standing = shared.comes_to(&run, JobStatusKind::Dead).await;
    assert!(matches!(&standing, JobStatus::Dead { error } if error.contains("panicked")), "{standing:?}");
}
