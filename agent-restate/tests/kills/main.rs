//! Real processes that are killed: the server and the service, with SIGKILL, at random moments, while runs are under way. Every
//! run ends as an unbroken one does, nothing with an effect happens twice in silence, and answers reach runs whatever died.
//!
//! `RESTATE_RUNS=1000 cargo test -p agent-restate --test kills` runs more than the twelve runs of CI. It prints what a step costs
//! beside a bare `ctx.run` too.

mod agent;
#[path = "../common/mod.rs"]
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
    dispatch::{Dispatch, Job, RunAddress, Standing},
    journal::{Entry, EntryBody},
    testing::SeededRng,
    tool::Doubt,
};
use agent_restate::{AgentEndpoint, AgentEndpointBuilder, Outcome, RestateJournal};
use futures::{StreamExt, stream};

use self::{agent::World, common::Server};

/// How many runs are under way at the same time.
const SIDE_BY_SIDE: usize = 12;
/// How many kills there are at most for each run: on a machine that does nothing between two of them, no run would ever end.
const MOST_KILLS: usize = 15;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    match args.get(1).map(String::as_str) {
        Some("serve") => runtime.block_on(serve(&args[2], Path::new(&args[3]))),
        // Asked for a list of tests, or for one of another name.
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

/// What somebody saw of a run.
#[derive(Default)]
struct Seen {
    faults: Vec<String>,
    doubts: usize,
}

/// Whether the run heard of an answer.
#[derive(Debug, PartialEq)]
enum Heard {
    NotYet,
    Yes,
}

/// Somebody who starts runs and answers their questions, however often the server is away.
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
        while !matches!(patiently(|| restate.standing(&at)).await, Some(Standing::Done | Standing::Dead { .. })) {
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

    /// Answers what the run asks.
    async fn answer(&self, at: &RunAddress, asked: &mut BTreeMap<String, Heard>, seen: &mut Seen) {
        let Ok(index) = self.journal.index(&at.session).await else { return };
        let Some(checkpoint) = index.look(|index| index.unfinished(&at.agent)) else { return };
        for question in checkpoint.questions {
            // For this question, and no later one of its id: the answer may be under way for long.
            let answers = BTreeMap::from([question.answer(self.world.answer(&question))]);
            match self.journal.restate().answer(at, answers).await {
                // The run may not have heard of the first answer when there is a second one.
                Ok(()) if asked.get(&question.digest) == Some(&Heard::Yes) => {
                    seen.faults.push(format!("{} asks again about '{}', which was answered", at.run, question.id));
                }
                Ok(()) => {
                    let is_new = asked.insert(question.digest.clone(), Heard::NotYet).is_none();
                    seen.doubts += usize::from(is_new && question.kind == Doubt::KIND);
                }
                // It does not wait yet, or not any more.
                Err(e) if e.kind() == ErrorKind::Stale => {
                    asked.entry(question.digest).and_modify(|heard| *heard = Heard::Yes);
                }
                Err(e) if e.kind() == ErrorKind::Store => {} // the server is away
                Err(e) => seen.faults.push(format!("{}: {e}", at.run)),
            }
        }
    }

    /// The run ended as one that nobody killed.
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

/// The calls in doubt, by idempotency key, about which a run asked more than once by what it asked and by the attempt that began the call.
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

/// What a call gives that is made until the server is there.
async fn patiently<T, F: Future<Output = agent_core::Result<T>>>(call: impl Fn() -> F) -> T {
    loop {
        match call().await {
            Ok(given) => return given,
            Err(e) if e.kind() == ErrorKind::Store => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(e) => panic!("{e}"),
        }
    }
}

/// Kills the server and the service, again and again.
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

    /// Kills until so many runs must have had a chance to end, whatever the machine's speed; does not end.
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
            // On a machine that is busy, a process that is killed before it serves lets no run go on.
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
