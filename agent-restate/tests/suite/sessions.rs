//! Runs on a real server, with processes that start and end.

use crate::common;
use crate::deeds;
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
    Answer, ErrorKind, Journal, Message, Question, Result, RunRequest, Tool, ToolOutput, ToolRequest, ToolSpec,
    WhenWaiting, async_trait,
    journal::{EntryBody, RunStatus, SessionInfo, each_entry},
};
use agent_dispatch::{Dispatch, Dispatched, Job, JobStatus, RunAddress, Signal};
use agent_exec::Agent;
use agent_restate::{AgentEndpoint, AgentEndpointBuilder, BlobStore, FileBlobs, Outcome, Restate, RestateJournal};
use bytes::Bytes;
use serde_json::json;

use self::{
    common::Server,
    deeds::{Call, Deed, Steps},
    process::Process,
};

struct World {
    server: Server,
    restate: Restate,
    address: SocketAddr,
    deed: Deed,
    process: Option<Process>,
    endpoint: AgentEndpoint,
}

impl World {
    async fn new(steps: &[Call]) -> Option<Self> {
        Self::with(steps, |builder| builder).await
    }

    async fn with(steps: &[Call], change: impl FnOnce(AgentEndpointBuilder) -> AgentEndpointBuilder) -> Option<Self> {
        let server = Server::start().await?;
        let (restate, address, deed) = (server.restate(), common::free_address(), Deed::default());
        let endpoint = change(AgentEndpoint::builder().agent(agent(steps, &deed))).build().expect("an endpoint");
        let process = Some(Process::start(&endpoint, address));
        restate.register(&format!("http://{address}")).await.expect("registers");
        Some(Self { server, restate, address, deed, process, endpoint })
    }

    async fn dispatch(&self, text: &str, run: &str) -> RunAddress {
        let job = job(text, run);
        let at = job.at.clone();
        assert_eq!(self.restate.dispatch(job).await.expect("is taken"), Dispatched::New);
        at
    }

    async fn run(&self, text: &str, run: &str) -> Outcome {
        let at = self.dispatch(text, run).await;
        self.end(&at).await
    }

    async fn end(&self, at: &RunAddress) -> Outcome {
        self.end_of(&self.restate, at).await
    }

    async fn end_of(&self, restate: &Restate, at: &RunAddress) -> Outcome {
        let end = tokio::time::timeout(Duration::from_secs(60), restate.outcome(at)).await;
        end.unwrap_or_else(|_| panic!("it does not end: {}", self.server.log())).expect("it ended")
    }

    async fn stands(&self, at: &RunAddress, is_so: impl Fn(&JobStatus) -> bool) {
        for _ in 0..2_400 {
            if self.restate.standing(at).await.expect("is known").is_some_and(|standing| is_so(&standing)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("it stands at {:?}: {}", self.restate.standing(at).await, self.server.log());
    }

    /// Waits for a question of the run and returns it.
    async fn question(&self, at: &RunAddress) -> Question {
        self.stands(at, |standing| *standing == JobStatus::AtRest).await;
        let index = self.journal().index(&at.session).await.expect("is read");
        index.look(|index| index.unfinished("clerk")).expect("it waits").questions.remove(0)
    }

    fn journal(&self) -> RestateJournal {
        RestateJournal::new(self.restate.clone())
    }

    /// Replaces the process by one with another agent of the same name: it accepts answers, but
    /// cannot drive runs of the earlier agent.
    async fn replace(&mut self, steps: &[Call], leaves_after: Duration) -> Process {
        let other = Agent::builder("clerk", Steps(steps.to_vec())).tool(self.deed.clone()).tool(Other).build();
        let other = AgentEndpoint::builder().agent(other.expect("an agent")).leaves_after(leaves_after).build();
        self.process.take().expect("it runs").kill().await;
        Process::start(&other.expect("an endpoint"), self.address)
    }

    fn deeds(&self) -> u32 {
        self.deed.0.load(Ordering::SeqCst)
    }
}

fn agent(steps: &[Call], deed: &Deed) -> Agent {
    Agent::builder("clerk", Steps(steps.to_vec())).tool(deed.clone()).max_steps(1_000).build().expect("an agent")
}

fn job(text: &str, run: &str) -> Job {
    Job::new("clerk", &RunRequest::user(text).session("a session/with any name").run_id(run)).expect("is data")
}

#[tokio::test(flavor = "multi_thread")]
async fn anybody_reads_a_session_as_a_whole_and_in_pages() {
    let Some(world) = World::new(&[("d1", "deed", json!({}))]).await else { return };
    let one = world.run("hello", "r1").await;
    assert_eq!(
        (one.answer.as_deref(), one.status),
        (Some("heard 1"), RunStatus::Finished(agent_core::ExitReason::Text))
    );
    let two = world.run("again", "r2").await;
    assert_eq!(two.answer.as_deref(), Some("heard 2"));
    assert_eq!(world.deeds(), 2);

    let journal = world.journal();
    let session = "a session/with any name";
    assert_eq!(journal.sessions().await.expect("are listed"), [session]);
    let index = journal.index(session).await.expect("is read");
    assert_eq!(index.look(|index| index.history("clerk").len()), 8);
    let all = journal.read(session, 0, 1_000).await.expect("is read");
    let numbers: Vec<_> = all.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    for after in 0..all.len() {
        let two = journal.read(session, after as u64, 2).await.expect("is read");
        assert_eq!(two, all[after..].iter().take(2).cloned().collect::<Vec<_>>(), "after {after}");
    }
    assert_eq!(journal.newest(session).await.expect("is read"), all.last().cloned());
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_and_known_without_their_content_and_no_look_is_kept() {
    let Some(world) = World::new(&[("d1", "deed", json!({}))]).await else { return };
    for (session, run) in [("t/it's", "r1"), ("t/a", "r1"), ("t/a", "r2"), ("u/a", "r1")] {
        let request = RunRequest::user("hello").session(session).run_id(run);
        let job = Job::new("clerk", &request).expect("is data");
        world.restate.dispatch(job.clone()).await.expect("is taken");
        world.end(&job.at).await;
    }
    let journal = world.journal();
    let list = async |prefix: &str, after: &str, limit| journal.list(prefix, after, limit).await.expect("are listed");
    assert_eq!(list("t/", "", 9).await, ["t/a", "t/it's"]);
    assert_eq!(list("t/", "", 1).await, ["t/a"]);
    assert_eq!(list("t/", "t/a", 9).await, ["t/it's"]);
    assert!(list("t/it's", "t/it's", 9).await.is_empty());
    for (session, runs) in [("t/a", 2), ("u/a", 1)] {
        let mut known = SessionInfo::default();
        each_entry(&journal, session, 0, |entry| known.apply(entry)).await.expect("is read");
        assert_eq!((known.runs, known.agents.len()), (runs, 1));
        assert_eq!(journal.info(session).await.expect("is known"), Some(known));
    }
    assert_eq!(journal.info("t/none").await.expect("is looked up"), None);

    let looks = "SELECT target_handler_name AS name FROM sys_invocation WHERE target_handler_name <> 'run'";
    let mut kept = world.server.query(looks).await;
    for _ in 0..200 {
        if kept["rows"] == json!([]) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
        kept = world.server.query(looks).await;
    }
    panic!("the server keeps what was looked at: {kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_updated_in_its_place_is_asked_again_what_it_serves() {
    let Some(mut world) = World::new(&[]).await else { return };
    world.process.take().expect("it runs").kill().await;
    let update = AgentEndpoint::builder().service("Updated").agent(agent(&[], &world.deed)).build();
    let _process = Process::start(&update.expect("an endpoint"), world.address);
    let updated = world.server.restate_of("Updated");
    updated.register(&format!("http://{}", world.address)).await.expect("registers");
    let job = job("hello", "r1");
    updated.dispatch(job.clone()).await.expect("the server knows of it");
    assert_eq!(world.end_of(&updated, &job.at).await.answer.as_deref(), Some("heard 1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_thousands_of_entries_keeps_all_that_was_said_and_shared() {
    let short = Duration::from_millis(200);
    // More than a thousand entries per run, before a question that suspends the run: it resumes in
    // another attempt.
    let mut steps: Vec<Call> = (0..200).map(|_| ("d1", "deed", json!({}))).collect();
    steps.extend([("d1", "deed", json!({"counts": true})), ("d1", "deed", json!({"asks": true}))]);
    let Some(world) = World::with(&steps, |builder| builder.leaves_after(short)).await else { return };
    let journal = world.journal();
    for n in 1..=4 {
        let at = world.dispatch("hello", &format!("r{n}")).await;
        world.stands(&at, |standing| *standing == JobStatus::AtRest).await;
        tokio::time::sleep(short * 3).await; // the run is suspended
        let index = journal.index(&at.session).await.expect("is read");
        let question = index.look(|index| index.unfinished("clerk")).expect("it waits").questions.remove(0);
        world.restate.answer(&at, BTreeMap::from([question.answer(true)])).await.expect("is taken");
        assert_eq!(world.end(&at).await.answer, Some(format!("heard {n}")));
    }
    let index = journal.index("a session/with any name").await.expect("is read");
    let (entries, count) = index.look(|index| (index.info().entries, index.globals().get("count").cloned()));
    assert!(entries > 4_000, "{entries}");
    assert_eq!(count, Some(json!(4)));
    let all = journal.read("a session/with any name", 0, 100_000).await.expect("is read");
    let anchors = all.iter().filter(|entry| matches!(entry.body, EntryBody::Anchored { .. })).count();
    assert_eq!(anchors, 3, "each run but the first begins with one");
    let newest = all.iter().rfind(|entry| matches!(entry.body, EntryBody::Anchored { .. }));
    let found = journal.anchor("a session/with any name").await.expect("is looked up");
    assert_eq!(found.map(|entry| entry.seq), newest.map(|entry| entry.seq));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_after_the_run_left_its_process_and_the_server_died() {
    let steps = [("d1", "deed", json!({})), ("d2", "deed", json!({"asks": true}))];
    let Some(mut world) = World::with(&steps, |builder| builder.leaves_after(Duration::from_millis(300))).await else {
        return;
    };
    let at = world.dispatch("hello", "r1").await;
    world.stands(&at, |standing| *standing == JobStatus::AtRest).await;
    world.server.kill_and_start().await;
    let wrong = BTreeMap::from([("nobody asked".to_owned(), Answer::from(json!(true)))]);
    let refused = world.restate.answer(&at, wrong).await.expect_err("is refused");
    assert_eq!(refused.kind(), agent_core::ErrorKind::Stale, "{refused}");

    let journal = world.journal();
    let index = journal.index(&at.session).await.expect("is read");
    let questions = index.look(|index| index.unfinished("clerk")).expect("it waits").questions;
    world.restate.answer(&at, BTreeMap::from([(questions[0].id.clone(), json!(true).into())])).await.expect("is taken");
    let end = world.end(&at).await;
    assert_eq!(end.answer.as_deref(), Some("heard 1"));
    let history = journal.index(&at.session).await.expect("is read").look(|index| index.history("clerk"));
    assert!(json!(history.iter().collect::<Vec<_>>()).to_string().contains("true"));
    assert_eq!(world.deeds(), 1, "what was done is not done again");
    let late = world.restate.answer(&at, BTreeMap::new()).await.expect_err("it waits for nothing");
    assert_eq!(late.kind(), agent_core::ErrorKind::Stale);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_tells_which_worker_began_a_run_and_which_took_it_over() {
    let steps = [("d1", "deed", json!({"asks": true})), ("d2", "deed", json!({}))];
    let short = Duration::from_millis(200);
    let Some(mut world) = World::with(&steps, |builder| builder.name("first").leaves_after(short)).await else {
        return;
    };
    let at = world.dispatch("hello", "r1").await;
    let question = world.question(&at).await;

    let second = AgentEndpoint::builder().name("second").agent(agent(&steps, &world.deed)).leaves_after(short).build();
    world.process.take().expect("it runs").kill().await;
    world.process = Some(Process::start(&second.expect("an endpoint"), world.address));
    world.restate.answer(&at, BTreeMap::from([question.answer(true)])).await.expect("is taken");
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("heard 1"));

    let entries = world.journal().read(&at.session, 0, 1_000).await.expect("is read");
    let drivers = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::RunStarted { ids, .. } => Some(("begins", ids.worker.clone()?)),
        EntryBody::RunResumed { ids, .. } => Some(("goes on", ids.worker.clone()?)),
        _ => None,
    });
    // It resumes when the second worker takes it over, and when the answer has arrived.
    let told = [("begins", "first".into()), ("goes on", "second".into()), ("goes on", "second".into())];
    assert_eq!(drivers.collect::<Vec<_>>(), told);
    assert_eq!(
        world.journal().index(&at.session).await.expect("is read").look(|index| index.history("clerk").len()),
        6
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_supersedes_the_one_that_waits_has_its_turn() {
    let Some(world) = World::new(&[("d1", "deed", json!({"asks": true}))]).await else { return };
    let first = world.dispatch("hello", "r1").await;
    world.stands(&first, |standing| *standing == JobStatus::AtRest).await;
    let mut second = job("never mind", "r2");
    second.when_waiting = Some(WhenWaiting::Supersede);
    world.restate.dispatch(second.clone()).await.expect("is taken");
    assert_eq!(world.end(&first).await.status, RunStatus::Cancelled);
    world.stands(&second.at, |standing| *standing == JobStatus::AtRest).await;
    world.restate.dispatch(second.clone()).await.expect("is known");
    world.stands(&second.at, |standing| *standing == JobStatus::AtRest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_in_the_middle_of_a_call() {
    let Some(world) = World::new(&[("d1", "deed", json!({"takes": 60_000}))]).await else { return };
    let at = world.dispatch("hello", "r1").await;
    world.stands(&at, |standing| matches!(standing, JobStatus::Running { .. })).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(world.restate.signal(&at, Signal::Cancel).await.expect("is told"));
    assert_eq!(world.end(&at).await.status, RunStatus::Cancelled);
    assert!(!world.restate.signal(&at, Signal::Cancel).await.expect("is told"), "it is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_what_steers_it_before_its_next_model_call() {
    let steps = [("d1", "deed", json!({"takes": 4_000})), ("d2", "deed", json!({}))];
    let Some(world) = World::new(&steps).await else { return };
    let at = world.dispatch("hello", "r1").await;
    world.stands(&at, |standing| matches!(standing, JobStatus::Running { .. })).await;
    assert!(world.restate.signal(&at, Signal::Steer(Message::user("be quick"))).await.expect("is told"));
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("heard 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_its_session_is_queued_and_can_be_cancelled() {
    let Some(world) = World::new(&[("d1", "deed", json!({"takes": 8_000}))]).await else { return };
    let first = world.dispatch("hello", "r1").await;
    world.stands(&first, |standing| matches!(standing, JobStatus::Running { .. })).await;
    let second = world.dispatch("again", "r2").await;
    world.stands(&second, |standing| *standing == JobStatus::Queued).await;
    let early = world.restate.signal(&second, Signal::Pause).await.expect_err("there is nothing to pause yet");
    assert_eq!(early.kind(), ErrorKind::Stale, "{early}");
    assert!(world.restate.signal(&second, Signal::Cancel).await.expect("is told"));
    assert_eq!(world.end(&first).await.answer.as_deref(), Some("heard 1"));
    assert_eq!(world.restate.standing(&second).await.expect("is looked up"), None, "Restate forgets what never began");
    assert_eq!(world.run("and now?", "r3").await.answer.as_deref(), Some("heard 2"));
    assert_eq!(world.deeds(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_large_is_kept_by_its_content_and_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = FileBlobs::new(folder.path());
    let steps = [("d1", "deed", json!({"gives": 100_000}))];
    let Some(world) = World::with(&steps, |builder| builder.blobs(blobs).large(10_000)).await else { return };
    assert_eq!(world.run("hello", "r1").await.answer.as_deref(), Some("heard 1"));
    assert_eq!(world.run("again", "r2").await.answer.as_deref(), Some("heard 2"));
    assert!(std::fs::read_dir(folder.path()).expect("a folder").count() >= 2);
    let journal = world.journal();
    let all = journal.read("a session/with any name", 0, 1_000).await.expect("is read");
    assert!(json!(all).to_string().len() > 200_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_an_outage_of_its_blobs_and_what_was_done_is_not_done_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = Flaky { files: FileBlobs::new(folder.path()), away: Arc::default() };
    let away = blobs.away.clone();
    let steps = [("d1", "deed", json!({"gives": 100_000})), ("d2", "deed", json!({"asks": true}))];
    let short = Duration::from_millis(200);
    let change = |builder: AgentEndpointBuilder| builder.blobs(blobs).large(10_000).leaves_after(short);
    let Some(world) = World::with(&steps, change).await else { return };
    away.store(3, Ordering::SeqCst); // when the first result is stored
    let at = world.dispatch("hello", "r1").await;
    world.stands(&at, |standing| *standing == JobStatus::AtRest).await;
    assert_eq!((world.deeds(), away.load(Ordering::SeqCst)), (1, 0));

    tokio::time::sleep(short * 3).await; // the run is suspended
    let journal = world.journal().blobs(FileBlobs::new(folder.path()));
    let index = journal.index(&at.session).await.expect("is read");
    let question = index.look(|index| index.unfinished("clerk")).expect("it waits").questions.remove(0);
    away.store(u32::MAX, Ordering::SeqCst);
    world.restate.answer(&at, BTreeMap::from([question.answer(true)])).await.expect("is taken");
    tokio::time::sleep(Duration::from_secs(4)).await; // more than one attempt of the process, and of Restate
    let told = world.restate.standing(&at).await.expect("is known");
    assert!(matches!(told, Some(JobStatus::Running { .. } | JobStatus::AtRest)), "{told:?}");
    away.store(0, Ordering::SeqCst);
    let end = world.end(&at).await;
    assert_eq!((end.answer.as_deref(), end.error, world.deeds()), (Some("heard 1"), None, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_of_a_session_are_kept_and_taken_away_one_by_one() {
    let Some(world) = World::new(&[]).await else { return };
    let note = async |notes: &[(&str, Option<serde_json::Value>)]| {
        let notes = notes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        world.restate.note("s", notes).await.expect("is noted");
        world.restate.notes("s").await.expect("are read")
    };
    assert_eq!(note(&[("", Some(json!(1))), ("a/b", Some(json!([2])))]).await.len(), 2);
    let kept = note(&[("", None), ("a/b", Some(json!(3))), ("nothing", None)]).await;
    assert_eq!(kept, BTreeMap::from([("a/b".to_owned(), json!(3))]));
}

/// Blob store that fails for a number of calls.
struct Flaky {
    files: FileBlobs,
    away: Arc<AtomicU32>,
}

impl Flaky {
    fn is_there(&self) -> Result<()> {
        match self.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Err(agent_core::Error::new(ErrorKind::Store, "the blobs are away")),
            Err(_) => Ok(()),
        }
    }
}

#[async_trait]
impl BlobStore for Flaky {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        self.is_there()?;
        self.files.put(name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Bytes> {
        self.is_there()?;
        self.files.get(name).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_corrected_while_the_run_is_away_is_taken() {
    let short = Duration::from_millis(200);
    let steps = [("d1", "deed", json!({"chooses": ["yes", "no"]}))];
    let Some(mut world) = World::with(&steps, |builder| builder.leaves_after(short)).await else { return };
    let at = world.dispatch("hello", "r1").await;
    let question = world.question(&at).await;

    tokio::time::sleep(short * 3).await; // the run is suspended, and the process ends
    let wrong = world.replace(&steps, short).await;
    for answer in ["perhaps", "no"] {
        world.restate.answer(&at, BTreeMap::from([question.answer(answer)])).await.expect("is taken");
    }
    wrong.kill().await;
    world.process = Some(Process::start(&world.endpoint, world.address));
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("heard 1"));
    let history = world.journal().index(&at.session).await.expect("is read").look(|index| index.history("clerk"));
    assert!(json!(history.iter().collect::<Vec<_>>()).to_string().contains("it is no"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_restate_ended_or_whose_agent_nobody_has_is_dead() {
    let Some(world) = World::new(&[("d1", "deed", json!({"asks": true}))]).await else { return };
    let mut job = job("hello", "r1");
    job.at.agent = "nobody".into();
    world.restate.dispatch(job.clone()).await.expect("is taken");
    let is_unknown = |standing: &JobStatus| matches!(standing, JobStatus::Dead { error } if error.contains("unknown agent 'nobody'"));
    world.stands(&job.at, is_unknown).await;
    let error = world.restate.outcome(&job.at).await.expect_err("it has no end");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");

    let at = world.dispatch("hello", "r2").await;
    world.stands(&at, |standing| *standing == JobStatus::AtRest).await;
    let sql = "SELECT id FROM sys_invocation WHERE status <> 'completed' AND target_handler_name = 'run'";
    let rows = world.server.query(sql).await;
    world.server.kill_invocation(rows["rows"][0]["id"].as_str().expect("is under way")).await;
    world.stands(&at, |standing| matches!(standing, JobStatus::Dead { .. })).await;
    let unknown = RunAddress::new("clerk", "a session/with any name", "r3");
    assert_eq!(world.restate.standing(&unknown).await.expect("is looked up"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_restate_does_not_know_yet_tells_nothing_of_its_runs() {
    let Some(server) = Server::start().await else { return };
    let at = job("hello", "r1").at;
    let error = server.restate().standing(&at).await.expect_err("nobody knows");
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    let error = server.restate().signal(&at, Signal::Cancel).await.expect_err("nobody knows");
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_not_driven_again_by_an_agent_that_changed_and_goes_on_with_the_one_that_began_it() {
    let steps = [("d1", "deed", json!({"asks": true}))];
    let short = Duration::from_millis(200);
    let Some(mut world) = World::with(&steps, |builder| builder.leaves_after(short)).await else { return };
    let at = world.dispatch("hello", "r1").await;
    let question = world.question(&at).await;

    let wrong = world.replace(&steps, short).await;
    world.restate.answer(&at, BTreeMap::from([question.answer(true)])).await.expect("is taken");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let told = world.restate.standing(&at).await.expect("is known");
    assert!(matches!(told, Some(JobStatus::Running { .. } | JobStatus::AtRest)), "{told:?}");
    wrong.kill().await;
    world.process = Some(Process::start(&world.endpoint, world.address));
    assert_eq!(world.end(&at).await.answer.as_deref(), Some("heard 1"));
}

/// Tool that the agent did not have when the run began.
struct Other;

#[async_trait]
impl Tool for Other {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("other", "", json!({"type": "object"}))
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text("new"))
    }
}
