//! Conformance tests of engines on a real Restate server, with processes that die.

use crate::common;
use crate::process;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Error, ErrorKind, Journal, Question, Result, async_trait, engine::ServedEnd, journal::RunStatus,
    testing::MortalProcess,
};
use agent_dispatch::{Dispatch, Dispatched, Job, JobStatus, RunAddress, Signal};
use agent_exec::{Agent, engine_conformance, testing::engines::EngineWorld};
use agent_restate::{AgentEndpoint, Outcome, Restate, RestateJournal};
use agent_tools::RemoteAgent;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};

use self::{common::Server, process::Process};

engine_conformance!(World);

/// A service of its own on a server that all worlds share.
struct World {
    server: Arc<Server>,
    service: String,
    restate: Restate,
    address: SocketAddr,
    /// Set once the endpoint is registered.
    registered: OnceCell<()>,
    /// Runs that were dispatched.
    runs: Mutex<BTreeSet<Arc<str>>>,
    /// Steps whose questions were already seen and answered. A repeated question waits in another
    /// step.
    seen: Mutex<BTreeSet<String>>,
    /// Processes that serve remote agents.
    elsewhere: Mutex<Vec<Process>>,
}

/// Returns the shared server, which runs as long as a world needs it.
async fn server() -> Option<Arc<Server>> {
    static SERVER: AsyncMutex<Weak<Server>> = AsyncMutex::const_new(Weak::new());
    let mut shared = SERVER.lock().await;
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let server = Arc::new(Server::start().await?);
    *shared = Arc::downgrade(&server);
    Some(server)
}

impl World {
    /// Returns Restate's state of the active run.
    async fn open(&self, run: &RunAddress) -> Value {
        let url = format!("{}/{}/{}/open", self.server.ingress(), self.service, run.session);
        common::post(&url, "null").await
    }

    /// Returns `count` open questions that were not seen yet, if there are as many.
    fn unseen(&self, open: &Value, questions: Vec<Question>, count: usize) -> Option<Vec<Question>> {
        let mut seen = self.seen.lock().expect("no panic");
        let signal = |question: &Question| open["asked"].get(&question.id).map(Value::to_string);
        let waiting = questions.into_iter().filter_map(|question| Some((signal(&question)?, question)));
        let new: Vec<_> = waiting.filter(|(signal, _)| !seen.contains(signal)).take(count).collect();
        let is_all = new.len() == count;
        is_all.then(|| new.into_iter().map(|(signal, question)| (seen.insert(signal), question).1).collect())
    }
}

#[async_trait]
impl EngineWorld for World {
    const REAL_TIME: bool = true;

    async fn new() -> Option<Self> {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let server = server().await?;
        let service = format!("World{}", WORLDS.fetch_add(1, Ordering::SeqCst));
        let (restate, address) = (server.restate_of(&service), common::free_address());
        let (registered, runs, seen, elsewhere) = Default::default();
        Some(Self { server, service, restate, address, registered, runs, seen, elsewhere })
    }

    async fn drive(&self, agent: Agent, job: &Job, process: &MortalProcess) -> Option<Result<ServedEnd>> {
        let dies = process.clone();
        let endpoint = AgentEndpoint::builder().service(&self.service).agent(agent);
        let endpoint = match endpoint.engine(move |engine| dies.engine(engine)).build() {
            Ok(endpoint) => endpoint,
            Err(refused) => return Some(Err(refused)),
        };
        let serving = Process::start(&endpoint, self.address);
        let register = async || self.restate.register(&format!("http://{}", self.address)).await.expect("registers");
        self.registered.get_or_init(register).await;
        let is_new = self.runs.lock().expect("no panic").insert(job.at.run.clone());
        let sent = self.restate.dispatch(job.clone()).await.expect("is taken");
        assert_eq!(sent, if is_new { Dispatched::New } else { Dispatched::Known });
        let end = tokio::select! {
            biased;
            end = self.restate.outcome(&job.at) => Some(ended(end.expect("is told"))),
            () = process.died() => None,
        };
        serving.kill().await;
        end
    }

    async fn asked(&self, run: &RunAddress, count: usize) -> Vec<Question> {
        let journal = RestateJournal::new(self.restate.clone());
        loop {
            let open = match self.registered.initialized() {
                true => self.open(run).await,
                false => Value::Null,
            };
            let index = journal.index(&run.session).await;
            let stands = index.ok().and_then(|index| index.look(|index| index.unfinished(&run.agent)));
            let questions = stands.map(|stands| stands.questions).unwrap_or_default();
            if let Some(questions) = self.unseen(&open, questions, count) {
                return questions;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn answer(&self, run: &RunAddress, answers: Vec<(Question, Value)>) {
        let answers = answers.into_iter().map(|(question, answer)| question.answer(answer)).collect();
        // Answers must not depend on the process.
        let (restate, run) = (self.restate.clone(), run.clone());
        let answering = tokio::spawn(async move { restate.answer(&run, answers).await });
        answering.await.expect("no panic").expect("is taken");
    }

    async fn pause(&self, run: &RunAddress) {
        assert!(self.restate.signal(run, Signal::Pause).await.expect("is told"));
    }

    async fn rests(&self, run: &RunAddress) {
        while self.restate.standing(run).await.expect("is known") != Some(JobStatus::AtRest) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn go_on(&self, run: &RunAddress) {
        self.restate.answer(run, BTreeMap::new()).await.expect("goes on");
    }

    async fn serve(&self, agent: Agent) -> RemoteAgent {
        let (service, address) = (format!("{}-{}", self.service, agent.name()), common::free_address());
        let tool = RemoteAgent::new(agent.name()).service(service.as_str());
        let endpoint = AgentEndpoint::builder().service(&service).agent(agent).build().expect("an endpoint");
        let process = Process::start(&endpoint, address);
        let restate = self.server.restate_of(&service);
        restate.register(&format!("http://{address}")).await.expect("registers");
        self.elsewhere.lock().expect("no panic").push(process);
        tool
    }
}

/// Converts the outcome of a run into the result of the call.
fn ended(outcome: Outcome) -> Result<ServedEnd> {
    let Outcome { status, answer, error, error_kind, usage, .. } = outcome;
    match status {
        RunStatus::Finished(reason) => Ok(ServedEnd::new(answer.unwrap_or_default(), reason, usage)),
        status => {
            let error = error.unwrap_or_else(|| format!("{status:?}"));
            Err(Error::new(error_kind.unwrap_or(ErrorKind::Tool), error))
        }
    }
}
