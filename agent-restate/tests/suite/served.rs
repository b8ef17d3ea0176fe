//! Agents that call remote agents, which are served by other processes.

use crate::common;
use crate::deeds;
use crate::process;

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

use agent_core::{
    Caps, Journal, Message, RunRequest,
    journal::{EntryBody, RunStatus},
};
use agent_dispatch::{Dispatch, Job, JobStatus, RunAddress, Signal};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use agent_restate::{AgentEndpoint, Outcome, Restate, RestateJournal};
use agent_tools::RemoteAgent;
use serde_json::json;

use self::{
    common::Server,
    deeds::{Call, Deed, Steps},
    process::Process,
};

/// Service of the agent `travel`.
const TRAVEL: &str = "Travel";

/// A server, a process whose agent `clerk` calls the agent `travel`, and a process that serves
/// `travel`.
struct World {
    server: Server,
    clerks: Restate,
    travels: Restate,
    _clerk: Process,
    /// Tool of `travel`.
    deed: Deed,
    _travel: Process,
}

impl World {
    /// Builds the world; the clerk has the tool `travel` beside the tools that `change` adds.
    async fn new(clerk: &[Call], travel: &[Call], change: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Option<Self> {
        let server = Server::start().await?;
        let (clerks, travels) = (server.restate(), server.restate_of(TRAVEL));
        let (address, deed) = (common::free_address(), Deed::default());
        let agent = change(Agent::builder("clerk", Steps(clerk.to_vec()))).build().expect("an agent");
        let endpoint = AgentEndpoint::builder().agent(agent).leaves_after(Duration::from_millis(300));
        let endpoint = endpoint.build().expect("an endpoint");
        let _clerk = Process::start(&endpoint, address);
        clerks.register(&format!("http://{address}")).await.expect("registers");

        let agent = Agent::builder("travel", Steps(travel.to_vec())).tool(deed.clone()).build().expect("an agent");
        let other = AgentEndpoint::builder().service(TRAVEL).agent(agent).leaves_after(Duration::from_millis(300));
        let elsewhere = common::free_address();
        let _travel = Process::start(&other.build().expect("an endpoint"), elsewhere);
        travels.register(&format!("http://{elsewhere}")).await.expect("registers");
        Some(Self { server, clerks, travels, _clerk, deed, _travel })
    }

    async fn dispatch(&self, text: &str, run: &str) -> RunAddress {
        let job = Job::new("clerk", &RunRequest::user(text).session("s").run_id(run)).expect("is data");
        self.clerks.dispatch(job.clone()).await.expect("is taken");
        job.at
    }

    async fn end(&self, of: &Restate, at: &RunAddress) -> Outcome {
        let end = tokio::time::timeout(Duration::from_secs(60), of.outcome(at)).await;
        end.unwrap_or_else(|_| panic!("it does not end: {}", self.server.log())).expect("it ended")
    }

    /// Waits until the called run is known to its service with a matching status.
    async fn stands(&self, at: &RunAddress, is_so: impl Fn(&JobStatus) -> bool) {
        for _ in 0..2_400 {
            if self.travels.standing(at).await.expect("is known").is_some_and(|standing| is_so(&standing)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("it stands at {:?}: {}", self.travels.standing(at).await, self.server.log());
    }

    /// Returns the results of the clerk's calls.
    async fn results(&self) -> Vec<String> {
        let index = RestateJournal::new(self.clerks.clone()).index("s").await.expect("is read");
        let history = index.look(|index| index.history("clerk"));
        history.iter().filter(|message| matches!(message, Message::Tool(_))).map(Message::text).collect()
    }

    fn deeds(&self) -> u32 {
        self.deed.0.load(Ordering::SeqCst)
    }
}

/// Returns the clerk's call.
fn asks_travel() -> Call {
    ("t1", "travel", json!({"message": "To Bern, please."}))
}

fn travel() -> RemoteAgent {
    RemoteAgent::new("travel").service(TRAVEL)
}

/// Returns the address of the run of `travel` for the call `t1` of the clerk's run.
fn called(run: &str) -> RunAddress {
    RunAddress::new("travel", "s/clerk/travel", format!("{run}/1/t1"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_an_agent_elsewhere_is_the_result_of_the_call_and_its_conversation_goes_on() {
    let does = [("d1", "deed", json!({}))];
    let caps = Caps::default().tokens(1_000);
    let Some(world) = World::new(&[asks_travel()], &does, |clerk| clerk.tool(travel().caps(caps))).await else {
        return;
    };
    for (run, heard) in [("r1", "heard 1"), ("r2", "heard 2")] {
        let at = world.dispatch("hello", run).await;
        let end = world.end(&world.clerks, &at).await;
        assert_eq!(end.status, RunStatus::Finished(agent_core::ExitReason::Text), "{end:?}");
        assert_eq!(world.results().await.last().map(String::as_str), Some(heard));
        let there = world.end(&world.travels, &called(run)).await;
        assert_eq!((there.answer.as_deref(), there.usage.calls), (Some(heard), 2));
    }
    assert_eq!(world.deeds(), 2);

    let journal = RestateJournal::new(world.clerks.clone());
    let entries = journal.read("s", 0, 1_000).await.expect("is read");
    let told = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::Decided { name, value, .. } if name == "t1/served" => Some(value.clone()),
        _ => None,
    });
    let at = called("r1");
    let named = json!({"agent": "travel", "service": TRAVEL, "session": at.session, "run": at.run});
    assert_eq!(told, Some(named), "whoever reads the caller's journal finds the run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_that_is_served_elsewhere_is_delegated_to_as_any_other() {
    let delegates = [("c1", "delegate", json!({"agent": "travel", "message": "To Bern, please."}))];
    let relay = Agent::of_tool("travel", travel()).build().expect("an agent");
    let delegation = Delegation::new().to("travel", "Books trips.", relay);
    let Some(world) = World::new(&delegates, &[("d1", "deed", json!({}))], |clerk| clerk.middleware(delegation)).await
    else {
        return;
    };
    let at = world.dispatch("hello", "r1").await;
    assert_eq!(world.end(&world.clerks, &at).await.answer.as_deref(), Some("heard 1"));
    assert_eq!(world.results().await, ["heard 1"]);
    assert_eq!(world.deeds(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_there_is_answered_there_while_the_caller_is_in_no_process_and_the_server_dies() {
    let asks = [("d1", "deed", json!({"asks": true}))];
    let Some(mut world) = World::new(&[asks_travel()], &asks, |clerk| clerk.tool(travel())).await else { return };
    let at = world.dispatch("hello", "r1").await;
    world.stands(&called("r1"), |standing| *standing == JobStatus::AtRest).await;
    let mut status = String::new();
    for _ in 0..2_400 {
        let sql =
            "SELECT status FROM sys_invocation WHERE target_service_name = 'Sessions' AND target_handler_name = 'run'";
        status = world.server.query(sql).await["rows"][0]["status"].as_str().unwrap_or_default().to_owned();
        if status == "suspended" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(status, "suspended", "the caller waits without a process");
    world.server.kill_and_start().await;

    let journal = RestateJournal::new(world.travels.clone());
    let index = journal.index(&called("r1").session).await.expect("is read");
    let question = index.look(|index| index.unfinished("travel")).expect("it waits").questions.remove(0);
    world.travels.answer(&called("r1"), BTreeMap::from([question.answer(true)])).await.expect("is taken");
    assert_eq!(world.end(&world.clerks, &at).await.answer.as_deref(), Some("heard 1"));
    assert_eq!(world.results().await, ["heard 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_elsewhere_is_cancelled_with_its_caller() {
    let takes_long = [("d1", "deed", json!({"takes": 60_000}))];
    let Some(world) = World::new(&[asks_travel()], &takes_long, |clerk| clerk.tool(travel())).await else { return };
    let at = world.dispatch("hello", "r1").await;
    world.stands(&called("r1"), |standing| matches!(standing, JobStatus::Running { .. })).await;
    assert!(world.clerks.signal(&at, Signal::Cancel).await.expect("is told"));
    assert_eq!(world.end(&world.clerks, &at).await.status, RunStatus::Cancelled);
    assert_eq!(world.end(&world.travels, &called("r1")).await.status, RunStatus::Cancelled);
    assert_eq!(world.deeds(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_elsewhere_that_takes_longer_than_its_call_may_is_cancelled_and_the_caller_goes_on() {
    let takes_long = [("d1", "deed", json!({"takes": 60_000}))];
    let hasty = travel().timeout(Duration::from_secs(5));
    let Some(world) = World::new(&[asks_travel()], &takes_long, |clerk| clerk.tool(hasty)).await else { return };
    let at = world.dispatch("hello", "r1").await;
    assert_eq!(world.end(&world.clerks, &at).await.answer.as_deref(), Some("heard 1"));
    assert_eq!(world.end(&world.travels, &called("r1")).await.status, RunStatus::Cancelled);
    assert_eq!(world.deeds(), 0, "what it was busy with was cut off");
    let results = world.results().await;
    assert!(results.len() == 1 && results[0].contains("did not answer in time"), "{results:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_an_agent_that_nobody_serves_fails_and_the_caller_goes_on() {
    let nobody = RemoteAgent::new("nobody").service(TRAVEL);
    let calls = [("n1", "nobody", json!({"message": "Are you there?"}))];
    let Some(world) = World::new(&calls, &[], |clerk| clerk.tool(nobody)).await else { return };
    let at = world.dispatch("hello", "r1").await;
    assert_eq!(world.end(&world.clerks, &at).await.answer.as_deref(), Some("heard 1"));
    let results = world.results().await;
    assert!(results[0].contains("unknown agent 'nobody': this endpoint serves travel"), "{results:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_calls_itself_does_so_no_deeper_than_it_may() {
    let calls = [("t1", "clerk", json!({"message": "Do it yourself."}))];
    let Some(world) = World::new(&calls, &[], |clerk| clerk.tool(RemoteAgent::new("clerk").max_depth(2))).await else {
        return;
    };
    let at = world.dispatch("hello", "r1").await;
    assert_eq!(world.end(&world.clerks, &at).await.answer.as_deref(), Some("heard 1"));
    let journal = RestateJournal::new(world.clerks.clone());
    let mut sessions = journal.sessions().await.expect("are listed");
    sessions.sort();
    assert_eq!(sessions, ["s", "s/clerk/clerk", "s/clerk/clerk/clerk/clerk"]);
    let deepest = journal.index(&sessions[2]).await.expect("is read").look(|index| index.history("clerk"));
    assert!(deepest.iter().any(|message| message.text().contains("at most 2 deep")), "{deepest:?}");
}
