//! Kill test with real processes: SIGKILL of server and service at random moments while runs are
//! active. Every run must end like an undisturbed one, no effect may be repeated silently, and
//! answers must reach their runs.
//!
//! `RESTATE_RUNS=1000 cargo test -p agent-restate --test kills` runs more than CI's twelve runs. It
//! also prints the cost of a step beside a bare `ctx.run`.

mod agent;
#[path = "../suite/common/mod.rs"]
mod common;
mod overhead;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{
    ErrorKind, Journal, Message, RunRequest,
    journal::{Entry, EntryBody},
    testing::SeededRng,
    tool::Doubt,
};
use agent_dispatch::{Dispatch, Job, JobStatus, RunAddress};
use agent_restate::{AgentEndpoint, AgentEndpointBuilder, Outcome, RestateJournal};
use futures::{StreamExt, stream};

use self::{agent::World, common::Server};

/// Number of concurrent runs.
const SIDE_BY_SIDE: usize = 12;
/// Maximum number of kills per run: on an idle machine, no run would ever end otherwise.
const MOST_KILLS: usize = 15;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    match args.get(1).map(String::as_str) {
        Some("serve") => runtime.block_on(serve(&args[2], Path::new(&args[3]))),
        // The test harness was asked for a list of tests, or for a test of another name.
        Some(arg) if arg.starts_with("--list") => {}
        _ => return runtime.block_on(check()),
    }
    ExitCode::SUCCESS
}

/// One process of the service.
async fn serve(address: &str, world: &Path) {
    let endpoint = AgentEndpoint::builder().leaves_after(Duration::from_secs(1));
    let endpoint = agent::agents(world).into_iter().fold(endpoint, AgentEndpointBuilder::agent);
    let listener = AgentEndpoint::listen(address.parse().expect("an address")).expect("the address is free");
    let served = endpoint.build().expect("an endpoint").serve(listener, std::future::pending::<()>()).await;
    served.expect("serves");
}

async fn check() -> ExitCode {
    let Some(server) = Server::start().await else { return ExitCode::SUCCESS };
    let runs = std::env::var("RESTATE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(SIDE_BY_SIDE);
    let folder = tempfile::tempdir().expect("a folder");
    let world = World(folder.path().join("done"));
    let mut killer = Killer::new(server, &world);
    overhead::measure(&killer.server).await;
    let (restate, journal) = (killer.server.restate(), RestateJournal::new(killer.server.restate()));
    restate.register(&format!("http://{}", killer.address)).await.expect("registers");

    let began = Instant::now();
    let person = Person { world: &world, journal: &journal };
    let drive = |n| person.sees_through(n);
    let ended = async { stream::iter(0..runs).map(drive).buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await };
    let ended = tokio::select! {
        ended = ended => ended,
        () = killer.kill_and_kill(runs) => unreachable!("it goes on killing"),
    };
    let took = began.elapsed();
    let mut faults: Vec<_> = ended.iter().flat_map(|seen| seen.faults.clone()).collect();
    let done = world.done();
    let delicate: Vec<_> = done.iter().filter(|(key, _)| key.starts_with(agent::DELICATE_MARK)).collect();
    faults.extend(
        delicate.iter().filter(|(_, times)| **times > 1).map(|(key, times)| format!("{key} happened {times} times")),
    );
    if delicate.len() != runs * agent::DELICATE {
        faults.push(format!("{} of {} effects happened", delicate.len(), runs * agent::DELICATE));
    }
    let doubts: usize = ended.iter().map(|seen| seen.doubts).sum();
    let repeated: u32 = done.values().map(|times| times - 1).sum();
    println!("runs                     {runs:>8} in {:.1} s", took.as_secs_f64());
    println!("kills of the service     {:>8}", killer.of_service);
    println!("kills of the server      {:>8}", killer.of_server);
    println!(
        "delicate effects         {:>8}, none twice: {}",
        delicate.len(),
        delicate.iter().all(|(_, times)| **times == 1)
    );
    println!("harmless effects twice   {repeated:>8}");
    println!("doubts that were asked   {doubts:>8}");
    println!("faults                   {:>8}", faults.len());
    faults.iter().take(20).for_each(|fault| println!("{fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Observations about a run.
#[derive(Default)]
struct Seen {
    faults: Vec<String>,
    doubts: usize,
}

/// Delivery state of an answer.
#[derive(Debug, PartialEq)]
enum Heard {
    NotYet,
    Yes,
}

/// Simulated user who starts runs and answers their questions, however often the server is
/// unavailable.
struct Person<'a> {
    world: &'a World,
    journal: &'a RestateJournal,
}

impl Person<'_> {
    async fn sees_through(&self, n: usize) -> Seen {
        let request = RunRequest::user("go").session(format!("s{n}")).run_id(format!("r{n}"));
        let job = Job::new("worker", &request).expect("is data");
        let (at, restate) = (job.at.clone(), self.journal.restate());
        patiently(|| restate.dispatch(job.clone())).await;
        let (mut asked, mut seen) = (BTreeMap::new(), Seen::default());
        let began = Instant::now();
        while !matches!(patiently(|| restate.standing(&at)).await, Some(JobStatus::Done | JobStatus::Dead { .. })) {
            if began.elapsed() > Duration::from_secs(300) {
                seen.faults.push(format!("{} does not end: {:?}", at.run, restate.standing(&at).await));
                return seen;
            }
            self.answer(&at, &mut asked, &mut seen).await;
            self.answer(&agent::porter_of(&at), &mut asked, &mut seen).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let outcome = patiently(|| restate.outcome(&at)).await;
        self.compare(&at, &outcome, &mut seen).await;
        seen
    }

    /// Answers the open questions of the run.
    async fn answer(&self, at: &RunAddress, asked: &mut BTreeMap<String, Heard>, seen: &mut Seen) {
        let Ok(index) = self.journal.index(&at.session).await else { return };
        let Some(checkpoint) = index.look(|index| index.unfinished(&at.agent)) else { return };
        for question in checkpoint.questions {
            // Bound to this question's digest: the answer may be in flight for long, and must not
            // answer a later question of the same id.
            let answers = BTreeMap::from([question.answer(self.world.answer(&question))]);
            match self.journal.restate().answer(at, answers).await {
                // The run may not have received the first answer when the second one is sent.
                Ok(()) if asked.get(&question.digest) == Some(&Heard::Yes) => {
                    seen.faults.push(format!("{} asks again about '{}', which was answered", at.run, question.id));
                }
                Ok(()) => {
                    let is_new = asked.insert(question.digest.clone(), Heard::NotYet).is_none();
                    seen.doubts += usize::from(is_new && question.kind == Doubt::KIND);
                }
                // The run is not waiting yet, or not any more.
                Err(e) if e.kind() == ErrorKind::Stale => {
                    asked.entry(question.digest).and_modify(|heard| *heard = Heard::Yes);
                }
                Err(e) if e.kind() == ErrorKind::Store => {} // the server is unavailable
                Err(e) => seen.faults.push(format!("{}: {e}", at.run)),
            }
        }
    }

    /// Checks that the run ended like an undisturbed one.
    async fn compare(&self, at: &RunAddress, outcome: &Outcome, seen: &mut Seen) {
        if outcome.answer.as_deref() != Some(agent::ANSWER) {
            seen.faults.push(format!("{} ended otherwise: {outcome:?}", at.run));
        }
        let index = patiently(|| self.journal.index(&at.session)).await;
        let history = index.look(|index| index.history(&at.agent));
        let results =
            history.iter().filter(|message| matches!(message, Message::Tool(result) if !result.is_error())).count();
        if (history.len(), results) != (19, 12) {
            seen.faults.push(format!("{} has {} messages, {results} results", at.run, history.len()));
        }
        for session in [&at.session, &agent::porter_of(at).session] {
            let entries = patiently(|| self.journal.read(session, 0, usize::MAX)).await;
            seen.faults.extend(
                asked_again(&entries).map(|key| format!("{key} was asked about again, though nobody began it anew")),
            );
        }
    }
}

/// Returns the calls in doubt, by idempotency key, that a run asked about more than once with the
/// same question and attempt.
fn asked_again(entries: &[Arc<Entry>]) -> impl Iterator<Item = String> {
    let mut asked = BTreeMap::<_, u32>::new();
    for entry in entries {
        if let EntryBody::Asked { question } = &entry.body
            && question.kind == Doubt::KIND
        {
            let began = question.id.rsplit('/').next().unwrap_or_default();
            *asked.entry((entry.run.clone(), question.payload.to_string(), began.to_owned())).or_default() += 1;
        }
    }
    asked.into_iter().filter(|(_, times)| *times > 1).map(|((_, payload, _), _)| payload)
}

/// Retries a call until the server is available.
async fn patiently<T, F: Future<Output = agent_core::Result<T>>>(call: impl Fn() -> F) -> T {
    loop {
        match call().await {
            Ok(given) => return given,
            Err(e) if e.kind() == ErrorKind::Store => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(e) => panic!("{e}"),
        }
    }
}

/// Repeatedly kills the server and the service.
struct Killer {
    server: Server,
    address: SocketAddr,
    world: World,
    service: Child,
    rng: SeededRng,
    of_service: u32,
    of_server: u32,
}

impl Killer {
    fn new(server: Server, world: &World) -> Self {
        let address = common::free_address();
        let service = start(address, world);
        let rng = SeededRng::new(std::env::var("RESTATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1));
        Self { server, address, world: world.clone(), service, rng, of_service: 0, of_server: 0 }
    }

    /// Kills at a rate that lets this many runs end, whatever the machine's speed; does not return.
    async fn kill_and_kill(&mut self, runs: usize) {
        while ((self.of_service + self.of_server) as usize) < runs * MOST_KILLS {
            tokio::time::sleep(Duration::from_millis(100 + self.rng.below(500))).await;
            if self.rng.below(4) == 0 {
                self.server.kill_and_start().await;
                self.of_server += 1;
            } else {
                self.service.kill().expect("it runs");
                self.service.wait().expect("it is ours");
                self.service = start(self.address, &self.world);
                self.of_service += 1;
            }
            // On a busy machine, a process that is killed before it serves lets no run progress.
            while tokio::net::TcpStream::connect(self.address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}

fn start(address: SocketAddr, world: &World) -> Child {
    let program = std::env::current_exe().expect("this is a program");
    let mut command = Command::new(program);
    command.args(["serve", &address.to_string()]).arg(&world.0).stdin(Stdio::null());
    command.spawn().expect("the service starts")
}
