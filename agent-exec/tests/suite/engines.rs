//! The engine that persists steps as bytes passes the conformance suite for engines.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
    time::SystemTime,
};

use agent_core::{
    Error, Journal, MemoryJournal, Question, Result, RunEnd, RunRequest, async_trait,
    engine::{Durable, ServedEnd},
    journal::Entry,
    run::Clock,
    testing::{ByteEngine, MortalProcess, SlowEngine},
};
use agent_dispatch::{Job, RunAddress};
use agent_exec::{Agent, RunHandle, engine_conformance, testing::engines::EngineWorld};
use agent_tools::RemoteAgent;
use serde_json::Value;
use tokio::time::Instant;

engine_conformance!(Bytes<false>);

/// The same engine, which takes its time to store a result.
mod slow {
    agent_exec::engine_conformance!(super::Bytes<true>);
}

/// State that outlives the processes.
#[derive(Default)]
struct Bytes<const SLOW: bool> {
    engine: ByteEngine,
    session: Mutex<Session>,
    /// The run in progress.
    run: Mutex<Option<RunHandle>>,
    began: OnceLock<Instant>,
}

/// The session's entries before each run, and after all of them.
#[derive(Default)]
struct Session {
    before: BTreeMap<Arc<str>, Vec<Entry>>,
    now: Vec<Entry>,
}

impl<const SLOW: bool> Bytes<SLOW> {
    /// Returns a clock of the paused time, which all processes share.
    fn clock(&self) -> Clock {
        let began = *self.began.get_or_init(Instant::now);
        Clock::new(move || SystemTime::UNIX_EPOCH + began.elapsed())
    }

    /// Returns the state of the session at the start of the run.
    fn session_of(&self, run: &RunAddress) -> MemoryJournal {
        let mut session = self.session.lock().expect("no panic");
        let now = session.now.clone();
        let before = session.before.entry(run.run.clone()).or_insert(now);
        let journal = MemoryJournal::default();
        drop(journal.open_now(&run.session, &run.agent).expect("is free").append(before.clone()));
        journal
    }

    /// Stores the session at the end of the run.
    async fn keep(&self, run: &RunAddress, journal: &MemoryJournal) {
        let entries = journal.read(&run.session, 0, usize::MAX).await.expect("is read");
        self.session.lock().expect("no panic").now = entries.iter().map(|entry| (**entry).clone()).collect();
    }
}

#[async_trait]
impl<const SLOW: bool> EngineWorld for Bytes<SLOW> {
    const REAL_TIME: bool = false;

    async fn new() -> Option<Self> {
        Some(Self::default())
    }

    async fn drive(&self, agent: Agent, job: &Job, process: &MortalProcess) -> Option<Result<ServedEnd>> {
        let journal = self.session_of(&job.at);
        let attempt: Arc<dyn Durable> = Arc::new(self.engine.attempt().in_session(journal.clone()));
        let attempt = if SLOW { Arc::new(SlowEngine::new(attempt)) } else { attempt };
        let engine = process.engine(attempt);
        let run = agent.start(job.request().durable(engine).resource(self.clock()));
        *self.run.lock().expect("no panic") = Some(run.handle());
        let end = tokio::select! {
            biased;
            end = run => end,
            () = process.died() => return None,
        };
        self.keep(&job.at, &journal).await;
        Some(end.map(|end| served(Ok(end))))
    }

    async fn asked(&self, _: &RunAddress, count: usize) -> Vec<Question> {
        self.engine.asked(count).await
    }

    async fn answer(&self, _: &RunAddress, answers: Vec<(Question, Value)>) {
        for (question, answer) in answers {
            self.engine.answer(question.id, answer);
        }
    }

    async fn pause(&self, _: &RunAddress) {
        self.run.lock().expect("no panic").as_ref().expect("a run is under way").pause();
    }

    async fn rests(&self, _: &RunAddress) {
        self.engine.rests().await;
    }

    async fn go_on(&self, _: &RunAddress) {
        self.engine.go_on();
    }

    async fn serve(&self, agent: Agent) -> RemoteAgent {
        let (engine, tool) = (self.engine.clone(), RemoteAgent::new(agent.name()));
        tokio::spawn(async move {
            loop {
                let run = engine.called().await;
                let request = RunRequest::new(run.messages).session(run.session).run_id(run.run.clone());
                engine.end(&run.run, served(agent.start(request).await));
            }
        });
        tool
    }
}

/// Converts the end of a run to the form that a remote caller receives.
fn served(end: Result<RunEnd>) -> ServedEnd {
    match end {
        Ok(end) => {
            let end = end.finished().expect("it finishes");
            ServedEnd::new(end.answer, end.reason, end.tree_usage)
        }
        Err(e) => {
            let used = e.checkpoint().map(|stands| stands.tree_usage).unwrap_or_default();
            ServedEnd::failed(&Error::tool(e.message().to_owned()), used)
        }
    }
}
