//! Runs whose engine keeps sessions too, and lets paused runs go on.

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use agent_core::{
    Journal, MemoryJournal, RunRequest, async_trait,
    engine::{Durable, Step, StepBody, StepResult},
    testing::{ByteAttempt, ByteEngine, ScriptedModel, Turn},
};
use agent_exec::Agent;

use self::common::finished;

/// An attempt of an engine that keeps sessions too.
struct Keeps {
    attempt: ByteAttempt,
    sessions: MemoryJournal,
    pauses: Arc<AtomicU32>,
}

#[async_trait]
impl Durable for Keeps {
    fn attempt(&self) -> &str {
        self.attempt.attempt()
    }

    fn journal(&self) -> Option<Arc<dyn Journal>> {
        Some(Arc::new(self.sessions.clone()))
    }

    async fn step(&self, step: &Step, body: StepBody<'_>) -> agent_core::Result<StepResult> {
        self.attempt.step(step, body).await
    }

    async fn paused(&self, _: &Step) -> agent_core::Result<()> {
        self.pauses.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// An engine, the sessions that it keeps, and how often it was told of a pause.
#[derive(Default)]
struct World {
    engine: ByteEngine,
    sessions: MemoryJournal,
    pauses: Arc<AtomicU32>,
}

impl World {
    fn request(&self, text: &str, run: &str) -> RunRequest {
        let (attempt, sessions, pauses) = (self.engine.attempt(), self.sessions.clone(), self.pauses.clone());
        let request = RunRequest::user(text).session("s").run_id(run);
        request.durable(Arc::new(Keeps { attempt, sessions, pauses }))
    }
}

fn agent(says: &str) -> Agent {
    Agent::builder("a", ScriptedModel::new([Turn::text(says)])).build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_engine_keeps_is_the_past_of_its_next_run() {
    let world = World::default();
    finished(agent("one").start(world.request("first", "r1")).await);
    let second = finished(agent("two").start(world.request("second", "r2")).await);
    assert_eq!(second.history.len(), 4, "what the first run said is in it");
    let known = agent("again").start(world.request("second", "r2")).await.expect_err("is there already");
    assert_eq!(known.kind(), agent_core::ErrorKind::Stale, "{known}");
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_goes_on_when_its_engine_lets_it() {
    let world = World::default();
    let run = agent("done").start(world.request("go", "r1"));
    run.handle().pause();
    assert_eq!(finished(run.await).answer, "done");
    assert_eq!(world.pauses.load(Ordering::SeqCst), 1);
}
