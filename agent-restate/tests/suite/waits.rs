//! Waits of runs with concurrent activity, and values that are too large for one message.

use crate::common;
use crate::process;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Answer, Ask, AssistantMessage, Block, Effect, ErrorKind, Flow, Journal, Message, Middleware, Model, ModelInfo,
    ModelRequest, ModelResponse, Result, RunCx, RunRequest, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
    WhenWaiting, async_trait, journal::RunStatus, middleware::ToolNext,
};
use agent_dispatch::{Dispatch, Dispatched, Job, JobStatus, RunAddress, Signal};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use agent_restate::{AgentEndpoint, AgentEndpointBuilder, FileBlobs, Outcome, Restate, RestateJournal};
use agent_tools::RemoteAgent;
use serde_json::{Value, json};

use self::{common::Server, process::Process};

/// Model that calls the tools of each step concurrently, and answers `done` at the end.
#[derive(Clone)]
struct Says(Vec<Vec<(&'static str, Value)>>);

#[async_trait]
impl Model for Says {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("says")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let said = req.messages.iter().rev().take_while(|message| !matches!(message, Message::User(_)));
        let step = said.filter(|message| matches!(message, Message::Assistant(_))).count();
        let call = |(n, (name, args)): (usize, &(&str, Value))| {
            Block::tool_call(format!("c{step}-{n}"), *name, args.to_string())
        };
        Ok(ModelResponse::new(match self.0.get(step) {
            Some(calls) => AssistantMessage::new(calls.iter().enumerate().map(call).collect()),
            None => "done".into(),
        }))
    }
}

/// Tool that counts its calls and follows its arguments, in this order: asks a question with a
/// timeout in milliseconds, blocks its thread the first time, takes time, decides, sleeps and
/// returns bytes.
#[derive(Clone, Default)]
struct Work(Arc<AtomicU32>);

impl Work {
    fn begun(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for Work {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("work", "", json!({"type": "object", "additionalProperties": true}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let time = |what: &str| req.args[what].as_u64().map(Duration::from_millis);
        if let Some(time) = time("asks") {
            req.ask_with(Ask::new("may", json!("May I?")).within(time).or(true))?;
        }
        let is_first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        if let Some(time) = time("blocks").filter(|_| is_first) {
            tokio::task::block_in_place(|| std::thread::sleep(time));
        }
        tokio::time::sleep(time("takes").unwrap_or_default()).await;
        if req.args["decides"] == true {
            req.decide("what", async { Ok(json!(1)) }).await?;
        }
        if let Some(time) = time("sleeps") {
            req.cx.sleep(&req.call.id, time).await?;
        }
        let bytes = req.args["gives"].as_u64().unwrap_or(4);
        Ok(ToolOutput::text("x".repeat(usize::try_from(bytes).expect("fits"))))
    }
}

struct World {
    server: Server,
    restate: Restate,
    address: SocketAddr,
    work: Work,
    process: Option<Process>,
    endpoint: AgentEndpoint,
}

/// Returns an agent of this name with the tool `work`.
fn agent(name: &str, steps: &[&[(&'static str, Value)]], work: &Work) -> AgentBuilder {
    Agent::builder(name, Says(steps.iter().map(|calls| calls.to_vec()).collect())).tool(work.clone())
}

impl World {
    /// Starts a process whose agent `clerk` makes the calls of these steps.
    async fn new(
        steps: &[&[(&'static str, Value)]],
        change: impl FnOnce(AgentEndpointBuilder) -> AgentEndpointBuilder,
    ) -> Option<Self> {
        let (server, work) = (Server::start().await?, Work::default());
        let clerk = agent("clerk", steps, &work).build().expect("an agent");
        Some(Self::on(server, clerk, work, change).await)
    }

    async fn on(
        server: Server,
        clerk: Agent,
        work: Work,
        change: impl FnOnce(AgentEndpointBuilder) -> AgentEndpointBuilder,
    ) -> Self {
        let (restate, address) = (server.restate(), common::free_address());
        let endpoint = change(AgentEndpoint::builder().agent(clerk)).build().expect("an endpoint");
        let process = Some(Process::start(&endpoint, address));
        restate.register(&format!("http://{address}")).await.expect("registers");
        Self { server, restate, address, work, process, endpoint }
    }

    async fn dispatch(&self, session: &str, run: &str) -> RunAddress {
        let job = job(session, run);
        self.restate.dispatch(job.clone()).await.expect("is taken");
        job.at
    }

    async fn end(&self, at: &RunAddress) -> Outcome {
        let end = tokio::time::timeout(Duration::from_secs(60), self.restate.outcome(at)).await;
        end.unwrap_or_else(|_| panic!("it does not end: {}", self.server.log())).expect("it ended")
    }

    /// Waits until the run has a matching status.
    async fn stands(&self, at: &RunAddress, is_so: impl Fn(&JobStatus) -> bool) -> JobStatus {
        for _ in 0..2_400 {
            match self.restate.standing(at).await.expect("is known").filter(&is_so) {
                Some(standing) => return standing,
                None => tokio::time::sleep(Duration::from_millis(25)).await,
            }
        }
        panic!("it stands at {:?}: {}", self.restate.standing(at).await, self.server.log());
    }

    /// Waits until a call of the tool is in progress.
    async fn works(&self, times: u32) {
        for _ in 0..2_400 {
            if self.work.begun() >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("no call begins: {}", self.server.log());
    }
}

fn job(session: &str, run: &str) -> Job {
    Job::new("clerk", &RunRequest::user("go").session(session).run_id(run)).expect("is data")
}

/// Inactivity timeout after which Restate asks a run to leave.
const SHORT: Duration = Duration::from_millis(400);

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_works_for_long_and_then_decides_and_sleeps_is_made_once_and_ends() {
    let works = ("work", json!({"takes": 1_000, "decides": true, "sleeps": 1_000}));
    let Some(world) = World::new(&[&[works]], |builder| builder.leaves_after(SHORT)).await else { return };
    let at = world.dispatch("s", "r1").await;
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
    assert_eq!(world.work.begun(), 1, "it was never cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_takes_longer_than_a_silent_run_may_does_not_keep_the_run_from_its_end() {
    let (server, work) = match Server::start().await {
        Some(server) => (server, Work::default()),
        None => return,
    };
    let slow = agent("clerk", &[&[("work", json!({}))]], &work).middleware(Slow).build().expect("an agent");
    let world = World::on(server, slow, work, |builder| builder.leaves_after(SHORT)).await;
    let at = world.dispatch("s", "r1").await;
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
}

/// Model that takes a second before each call.
struct Slow;

#[async_trait]
impl Middleware for Slow {
    async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Flow::Continue)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_run_that_is_cancelled_where_no_process_hears_of_it_ends_long_before_its_call() {
    let works = ("work", json!({"takes": 60_000}));
    let Some(world) = World::new(&[&[works]], |builder| builder.leaves_after(SHORT)).await else { return };
    let at = world.dispatch("s", "r1").await;
    world.works(1).await;
    let standing = world.stands(&at, |standing| matches!(standing, JobStatus::Running { .. })).await;
    let JobStatus::Running { worker } = standing else { unreachable!("it runs") };
    world.server.cancel(&worker).await;
    assert_eq!(world.end(&at).await.status, RunStatus::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_beside_a_call_of_an_agent_elsewhere_is_kept_before_that_ends() {
    let Some(server) = Server::start().await else { return };
    let (work, there) = (Work::default(), Work::default());
    let travel = agent("travel", &[&[("work", json!({"takes": 5_000}))]], &there).build().expect("an agent");
    let other = AgentEndpoint::builder().service("Travel").agent(travel).build().expect("an endpoint");
    let elsewhere = common::free_address();
    let _travel = Process::start(&other, elsewhere);
    server.restate_of("Travel").register(&format!("http://{elsewhere}")).await.expect("registers");

    let works = || ("work", json!({"takes": 700}));
    let helper = agent("helper", &[&[works()], &[works()], &[works()]], &work).build().expect("an agent");
    let delegates = ("delegate", json!({"agent": "helper", "message": "help"}));
    let calls = [("travel", json!({"message": "To Bern, please."})), delegates];
    let clerk = agent("clerk", &[&calls], &work).tool(RemoteAgent::new("travel").service("Travel"));
    let clerk = clerk.middleware(Delegation::new().to("helper", "Helps.", helper)).build().expect("an agent");
    let world = World::on(server, clerk, work, |builder| builder.leaves_after(SHORT)).await;
    let at = world.dispatch("s", "r1").await;
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
    assert_eq!((world.work.begun(), there.begun()), (3, 1), "none of the calls was cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_an_outage_of_more_attempts_than_the_server_makes_by_itself() {
    let Some(server) = Server::start_trying("3").await else { return };
    let work = Work::default();
    let clerk = agent("clerk", &[&[("work", json!({}))]], &work).build().expect("an agent");
    let mut world = World::on(server, clerk, work, |builder| builder).await;
    drop(world.process.take());
    tokio::time::sleep(Duration::from_millis(300)).await; // no process serves the address now
    let at = world.dispatch("s", "r1").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.process = Some(Process::start(&world.endpoint, world.address));
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_told_to_end_has_the_call_under_way_made_and_another_one_goes_on() {
    let takes = |time: u32| ("work", json!({"takes": time}));
    let steps: &[&[_]] = &[&[takes(3_000)], &[takes(8_000)]];
    let Some(mut world) = World::new(steps, |builder| builder).await else { return };
    let clerk = agent("clerk", steps, &world.work).build().expect("an agent");
    let ending = AgentEndpoint::builder().agent(clerk).build().expect("an endpoint");
    world.process.take().expect("it runs").kill().await;
    let listener = AgentEndpoint::listen(world.address).expect("the address is free");
    let (end, ends) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move { ending.serve(listener, ends).await });
    let at = world.dispatch("s", "r1").await;
    world.works(1).await;
    end.send(()).expect("it serves");
    serving.await.expect("no panic").expect("it served");
    assert_eq!(world.work.begun(), 1, "nothing more began there");
    world.process = Some(Process::start(&world.endpoint, world.address));
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
    assert_eq!(world.work.begun(), 2, "what was under way is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_blocks_its_thread_is_driven_again_elsewhere() {
    let blocks = ("work", json!({"blocks": 60_000}));
    let Some(world) = World::new(&[&[blocks]], |builder| builder.leaves_after(SHORT).gone_after(SHORT)).await else {
        return;
    };
    let at = world.dispatch("s", "r1").await;
    let end = tokio::time::timeout(Duration::from_secs(50), world.end(&at)).await.expect("it does not wait");
    assert_eq!(end.answer.as_deref(), Some("done"));
    assert!(world.work.begun() >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_more_bytes_than_a_message_takes_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let gives = |bytes: u32| ("work", json!({"gives": bytes}));
    let steps: &[&[_]] = &[&[gives(5 << 20), gives(5 << 20)], &[gives(33 << 20)]];
    let with = |builder: AgentEndpointBuilder| builder.blobs(FileBlobs::new(folder.path()));
    let Some(world) = World::new(steps, with).await else { return };
    let at = world.dispatch("s", "r1").await;
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
    let journal = || RestateJournal::new(world.restate.clone());
    let read = async |journal: RestateJournal| {
        tokio::time::timeout(Duration::from_secs(60), journal.read("s", 0, 1_000)).await.expect("it is answered")
    };
    let all = read(journal().blobs(FileBlobs::new(folder.path()))).await.expect("is read");
    let numbers: Vec<_> = all.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    assert!(json!(all).to_string().len() > 43 << 20);
    let refused = read(journal()).await.expect_err("an entry is too large for a message");
    assert!(refused.message().contains("blobs(..)"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_one_id_in_two_sessions_are_told_what_is_theirs() {
    let works = ("work", json!({"takes": 60_000}));
    let Some(world) = World::new(&[&[works]], |builder| builder).await else { return };
    let (one, two) = (world.dispatch("s1", "r1").await, {
        world.works(1).await;
        world.dispatch("s2", "r1").await
    });
    world.works(2).await;
    tokio::time::sleep(Duration::from_secs(2)).await; // the entries are recorded: both runs are silent now
    assert!(world.restate.signal(&one, Signal::Cancel).await.expect("is told"));
    let end = tokio::time::timeout(Duration::from_secs(10), world.end(&one)).await.expect("it hears of it at once");
    assert_eq!(end.status, RunStatus::Cancelled);
    assert!(matches!(world.restate.standing(&two).await.expect("is known"), Some(JobStatus::Running { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_sent_again_supersedes_the_one_that_waits() {
    let asks = ("work", json!({"asks": 3_600_000}));
    let Some(world) = World::new(&[&[asks]], |builder| builder).await else { return };
    let first = world.dispatch("s", "r1").await;
    world.stands(&first, |standing| *standing == JobStatus::AtRest).await;
    let mut second = job("s", "r2");
    world.restate.dispatch(second.clone()).await.expect("is taken"); // its sender died before it superseded anything
    second.when_waiting = Some(WhenWaiting::Supersede);
    assert_eq!(world.restate.dispatch(second.clone()).await.expect("is known"), Dispatched::Known);
    assert_eq!(world.end(&first).await.status, RunStatus::Cancelled);
    world.stands(&second.at, |standing| *standing == JobStatus::AtRest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_question_was_not_answered_in_time_is_at_work_and_takes_no_answer() {
    let asks = ("work", json!({"asks": 5_000, "takes": 10_000}));
    let Some(world) = World::new(&[&[asks]], |builder| builder.leaves_after(SHORT)).await else { return };
    let at = world.dispatch("s", "r1").await;
    world.stands(&at, |standing| *standing == JobStatus::AtRest).await;
    let journal = RestateJournal::new(world.restate.clone());
    let index = journal.index("s").await.expect("is read");
    let question = index.look(|index| index.unfinished("clerk")).expect("it waits").questions.remove(0);
    world.works(1).await;
    world.stands(&at, |standing| matches!(standing, JobStatus::Running { .. })).await;
    let answers = BTreeMap::from([(question.id, Answer::from(json!(true)))]);
    let late = world.restate.answer(&at, answers).await.expect_err("it is too late");
    assert_eq!(late.kind(), ErrorKind::Stale, "{late}");
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
}

/// Middleware that asks before each call, and approves after two seconds.
struct Guard;

#[async_trait]
impl Middleware for Guard {
    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        req.ask_with(Ask::new("may", json!("May I?")).within(Duration::from_secs(2)).or(true))?;
        next.run(req).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hooks_question_that_nobody_answered_in_time_is_not_asked_again_when_the_run_is_back_in_a_process() {
    let (server, work) = match Server::start().await {
        Some(server) => (server, Work::default()),
        None => return,
    };
    let helper = agent("helper", &[&[("work", json!({}))]], &work).middleware(Guard).build().expect("an agent");
    let delegates = ("delegate", json!({"agent": "helper", "message": "help"}));
    let clerk = agent("clerk", &[&[delegates, ("work", json!({}))], &[("work", json!({"asks": 3_000}))]], &work);
    let clerk = clerk.middleware(Guard).middleware(Delegation::new().to("helper", "Helps.", helper));
    let world = World::on(server, clerk.build().expect("an agent"), work, |builder| builder.leaves_after(SHORT)).await;
    let at = world.dispatch("s", "r1").await;
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
    assert_eq!(world.work.begun(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_too_large_together_are_kept_one_after_another() {
    let gives = || ("work", json!({"gives": 9 << 20, "takes": 300}));
    let steps: &[&[_]] = &[&[gives(), gives(), gives(), gives()]];
    let Some(world) = World::new(steps, |builder| builder).await else { return };
    let at = world.dispatch("s", "r1").await;
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("done"));
    assert_eq!(world.work.begun(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_too_large_for_restate_ends_the_run_with_what_helps() {
    let gives = |bytes: u32| ("work", json!({"gives": bytes}));
    let steps: &[&[_]] = &[&[gives(14_000_000)], &[gives(14_000_000)], &[gives(20 << 20)]];
    let Some(world) = World::new(steps, |builder| builder).await else { return };
    let at = world.dispatch("s", "r1").await;
    let end = world.end(&at).await;
    assert!(end.error.as_deref().unwrap_or_default().contains("blobs(..)"), "{end:?}");
    assert_eq!(world.work.begun(), 3);
}
