//! Policies of a second run whose session is held.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_core::{
    ErrorKind, Journal, MemoryJournal, RunRequest, WhenBusy, WhenWaiting,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_store::SqliteJournal;
use futures::{FutureExt, future::join_all};
use serde_json::json;
use tokio::sync::Notify;

use super::{agent, asking, built, entries, on, visit, waiting};
use crate::common::{FnTool, finished, roles, stopped};

/// A running run that waits in its tool.
struct Held {
    agent: Agent,
    model: ScriptedModel,
    run: tokio::task::JoinHandle<agent_core::Result<agent_core::RunEnd>>,
    go: Arc<Notify>,
}

impl Held {
    /// Starts a run that waits in its first step; `turns` are the model's later responses.
    async fn new(journal: &(impl Journal + Clone), turns: Vec<Turn>) -> Self {
        let (here, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let turns = std::iter::once(Turn::call("1", "waiting", json!({}))).chain(turns);
        let model = ScriptedModel::new(turns);
        let tool: FnTool = waiting(&here, &go).repeatable();
        let agent = built(agent(&model, journal).tool(tool).tool(visit()).tool(asking()));
        let run = tokio::spawn(agent.start(on("first", "s")));
        here.notified().await;
        Self { agent, model, run, go }
    }

    async fn ends(self) -> agent_core::Result<agent_core::RunEnd> {
        self.go.notify_one();
        self.run.await.expect("no panic")
    }
}

/// Lets all tasks proceed that can.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

// --- queue ---

#[tokio::test(start_paused = true)]
async fn queued_runs_go_one_after_the_other_in_order_and_see_what_came_before() {
    let journal = MemoryJournal::default();
    let held = Held::new(&journal, ["one", "two", "three", "four"].map(Turn::text).to_vec()).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let queued = ["second", "third", "fourth"].map(|text| {
        let run = held.agent.start(on(text, "s").when_busy(WhenBusy::queue()));
        let order = order.clone();
        tokio::spawn(async move {
            let end = finished(run.await);
            order.lock().expect("free").push(text);
            end
        })
    });
    settle().await;
    assert_eq!(held.model.calls(), 1, "they wait");
    let model = held.model.clone();
    assert_eq!(finished(held.ends().await).answer, "one");
    let ends = join_all(queued).await.into_iter().map(|end| end.expect("no panic").answer).collect::<Vec<_>>();
    assert_eq!(ends, ["two", "three", "four"]);
    assert_eq!(*order.lock().expect("free"), ["second", "third", "fourth"]);
    let texts = model.requests().last().expect("a request").texts();
    assert_eq!(texts[3..], ["one", "second", "two", "third", "three", "fourth"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_a_cancelled_or_dropped_wait_leaves_it() {
    let journal = MemoryJournal::default();
    let held = Held::new(&journal, ["one", "two"].map(Turn::text).to_vec()).await;
    let queued = |text| held.agent.start(on(text, "s").when_busy(WhenBusy::Queue { limit: 2 }));
    let (cancelled, mut dropped) = (queued("cancelled"), Box::pin(queued("dropped")));
    let handle = cancelled.handle();
    let cancelled = tokio::spawn(cancelled);
    assert!((&mut dropped).now_or_never().is_none());
    settle().await;
    let e = queued("too many").await.expect_err("full");
    assert_eq!(e.kind(), ErrorKind::Busy);
    assert!(e.message().contains("2 others wait"), "{e}");

    handle.cancel();
    let e = cancelled.await.expect("no panic").expect_err("cancelled");
    assert_eq!(e.kind(), ErrorKind::Cancelled);
    drop(dropped);
    let next = tokio::spawn(queued("next"));
    settle().await;
    let model = held.model.clone();
    finished(held.ends().await);
    assert_eq!(finished(next.await.expect("no panic")).answer, "two");
    let said = model.requests()[2].texts();
    assert!(!said.iter().any(|text| text == "cancelled" || text == "dropped" || text == "too many"), "{said:?}");
}

#[tokio::test]
async fn a_queued_run_waits_for_another_process_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
    let held = Held::new(&open(), vec![Turn::text("one")]).await;
    let model = ScriptedModel::new([Turn::text("two")]);
    let other = built(agent(&model, &open()).when_busy(WhenBusy::queue()));
    let queued = tokio::spawn(other.start(on("second", "s")));
    settle().await;
    assert_eq!(model.calls(), 0);
    finished(held.ends().await);
    let end = finished(queued.await.expect("no panic"));
    assert_eq!(end.answer, "two");
    assert_eq!(model.requests()[0].texts(), ["first", "", "gone", "one", "second"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_badly_hands_the_session_on() {
    let journal = MemoryJournal::default();
    let down = || agent_core::Error::new(ErrorKind::Provider, "the provider is down");
    let held = Held::new(&journal, vec![Turn::error(down), Turn::text("two"), Turn::text("three")]).await;
    let agent = held.agent.clone();
    let queued = tokio::spawn(agent.start(on("second", "s").when_busy(WhenBusy::queue())));
    settle().await;
    assert_eq!(held.ends().await.expect_err("fails").kind(), ErrorKind::Provider);
    assert_eq!(finished(queued.await.expect("no panic")).answer, "two");
    assert_eq!(finished(agent.start(on("third", "s")).await).answer, "three");
}

// --- steer ---

#[tokio::test(start_paused = true)]
async fn a_run_that_steers_puts_its_message_into_the_one_under_way_and_ends_as_it_does() {
    let journal = MemoryJournal::default();
    let held = Held::new(&journal, vec![Turn::text("as you wish")]).await;
    let (agent, model) = (held.agent.clone(), held.model.clone());
    let steer = |text: &str| tokio::spawn(agent.start(on(text, "s").when_busy(WhenBusy::Steer)));
    let (one, two) = (steer("be brief"), steer("and kind"));
    settle().await;
    let end = finished(held.ends().await);
    for steered in [one, two] {
        assert_eq!(finished(steered.await.expect("no panic")), end);
    }
    assert_eq!(model.requests()[1].texts(), ["first", "", "gone", "be brief", "and kind"]);
    assert_eq!(agent.sessions().expect("a store").named("s", "a").runs().await.expect("reads").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_steers_runs_itself_if_nobody_else_does_and_one_that_comes_too_late_too() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new([Turn::text("one"), Turn::text("two")]);
    let late = Arc::new(Mutex::new(None));
    let (agent_slot, keeper) = (Arc::new(Mutex::new(None::<Agent>)), late.clone());
    let slot = agent_slot.clone();
    // The first run has ended except for its last hook when the second one comes.
    let starts = crate::common::hooks::after_agent(move |_, _| {
        if let Some(agent) = slot.lock().expect("free").take() {
            *keeper.lock().expect("free") = Some(tokio::spawn(agent.start(on("late", "s"))));
        }
        Ok(())
    });
    let agent = built(agent(&model, &journal).when_busy(WhenBusy::Steer).middleware(starts));
    *agent_slot.lock().expect("free") = Some(agent.clone());
    assert_eq!(finished(agent.start(on("early", "s")).await).answer, "one");
    let late = late.lock().expect("free").take().expect("started");
    assert_eq!(finished(late.await.expect("no panic")).answer, "two");
    assert_eq!(model.requests()[1].texts(), ["early", "one", "late"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_steers_one_that_fails_fails_as_it_does_and_its_message_is_kept() {
    let journal = MemoryJournal::default();
    let down = || agent_core::Error::new(ErrorKind::Provider, "the provider is down");
    let held = Held::new(&journal, vec![Turn::error(down), Turn::text("better")]).await;
    let (agent, model) = (held.agent.clone(), held.model.clone());
    let steered = tokio::spawn(agent.start(on("be brief", "s").when_busy(WhenBusy::Steer)));
    settle().await;
    assert_eq!(held.ends().await.expect_err("fails").kind(), ErrorKind::Provider);
    let e = steered.await.expect("no panic").expect_err("fails");
    assert_eq!((e.kind(), e.checkpoint().is_some()), (ErrorKind::Provider, true));
    finished(agent.start(RunRequest::recover("s", [])).await);
    assert_eq!(model.requests()[2].texts().last().expect("a text"), "be brief");
}

#[tokio::test]
async fn a_run_of_another_process_cannot_be_steered_and_the_error_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
    let held = Held::new(&open(), vec![Turn::text("one")]).await;
    let model = ScriptedModel::new([]);
    let e = built(agent(&model, &open()).when_busy(WhenBusy::Steer)).start(on("x", "s")).await.expect_err("elsewhere");
    assert_eq!(e.kind(), ErrorKind::Busy);
    assert!(e.message().contains("only runs of this agent in this process can"), "{e}");
    finished(held.ends().await);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_is_neither_steered_nor_forked() {
    let journal = MemoryJournal::default();
    let held = Held::new(&journal, vec![Turn::text("one")]).await;
    for policy in [WhenBusy::Steer, WhenBusy::Fork] {
        let request = RunRequest::recover("s", []).when_busy(policy);
        assert_eq!(held.agent.start(request).await.expect_err("busy").kind(), ErrorKind::Busy, "{policy:?}");
    }
    finished(held.ends().await);
    assert_eq!(journal.sessions().await.expect("lists"), ["s"]);
}

// --- fork ---

#[tokio::test(start_paused = true)]
async fn a_fork_begins_with_what_the_session_held_before_the_run_under_way() {
    let journal = MemoryJournal::default();
    let before = ScriptedModel::new([Turn::call("v", "visit", json!({})), Turn::text("hello")]);
    finished(built(agent(&before, &journal).tool(visit())).start(on("hi", "s")).await);

    let turns = [Turn::call("v", "visit", json!({})), Turn::text("forked"), Turn::text("one"), Turn::text("again")];
    let held = Held::new(&journal, turns.to_vec()).await;
    let (agent, model) = (held.agent.clone(), held.model.clone());
    let fork = finished(agent.start(on("meanwhile", "s").when_busy(WhenBusy::Fork)).await);
    assert_eq!(fork.answer, "forked");
    let session = fork.ids.session.clone();
    assert!(session.starts_with("s~"), "{session}");
    assert_eq!(model.requests()[1].texts(), ["hi", "", "visit 1", "hello", "meanwhile"]);
    let kept = journal.index(&session).await.expect("folds").look(|index| index.view("a"));
    assert_eq!((kept.history, &kept.globals["visits"]), (fork.history, &json!(2)), "its storage is its own");

    let first = finished(held.ends().await);
    assert_eq!((first.answer.as_str(), &*first.ids.session), ("one", "s"));
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("a"));
    assert_eq!((kept.history, &kept.globals["visits"]), (first.history, &json!(1)));
    // The branch is a session like any other.
    let again = finished(agent.start(RunRequest::user("and?").session(session)).await);
    assert_eq!(again.answer, "again");
    assert_eq!(roles(&again.history).len(), 10);
}

#[tokio::test]
async fn a_fork_leaves_another_process_alone_and_is_none_if_the_session_is_free() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
    let held = Held::new(&open(), vec![Turn::text("one")]).await;
    let journal = open();
    let model = ScriptedModel::new([Turn::text("forked"), Turn::text("straight")]);
    let agent = built(agent(&model, &journal).when_busy(WhenBusy::Fork));
    let fork = finished(agent.start(on("meanwhile", "s")).await);
    assert_eq!((fork.answer.as_str(), model.requests()[0].texts()), ("forked", vec!["meanwhile".to_owned()]));
    finished(held.ends().await);
    assert_eq!(&*finished(agent.start(on("next", "s")).await).ids.session, "s");
    assert_eq!(journal.sessions().await.expect("lists").len(), 2);
}

// --- a writer that was suspended ---

/// A clock that tests set.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    const TTL: Duration = Duration::from_secs(30);

    fn journal(&self, path: &std::path::Path) -> SqliteJournal {
        let seconds = self.0.clone();
        let now =
            move || -> SystemTime { UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds.load(Ordering::SeqCst)) };
        SqliteJournal::builder(path).lease_ttl(Self::TTL).clock(now).open().expect("opens")
    }
}

#[tokio::test]
async fn a_process_that_slept_through_a_takeover_writes_nothing_and_its_run_fails() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("agent.db");
    // The suspended process's own clock stands still.
    let (asleep, awake) = (Clock::default(), Clock::default());
    let held = Held::new(&asleep.journal(&path), vec![Turn::text("never kept")]).await;
    let journal = awake.journal(&path);
    let heir = ScriptedModel::new([Turn::text("taken over")]);
    let heir_agent = built(agent(&heir, &journal));
    assert_eq!(heir_agent.start(on("too early", "s")).await.expect_err("alive").kind(), ErrorKind::Busy);
    awake.0.store(Clock::TTL.as_secs(), Ordering::SeqCst);
    let end = finished(heir_agent.start(on("hello?", "s")).await);
    assert_eq!(heir.requests()[0].texts(), ["first", "", agent_core::engine::UNKNOWN_OUTCOME, "hello?"]);

    let before = entries(&journal, "s").await;
    let e = held.ends().await.expect_err("it lost its lease");
    assert_eq!(e.kind(), ErrorKind::Store);
    assert!(e.message().contains("lease of agent 'a' in session 's' was lost"), "{e}");
    assert_eq!(entries(&journal, "s").await, before, "not an entry of the sleeper");
    assert_eq!(journal.index("s").await.expect("folds").look(|index| index.view("a")).history, end.history);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_holds_nobody_up() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new([Turn::call("1", "asking", json!({})), Turn::text("fine")]);
    let agent = agent(&model, &journal).tool(asking()).when_busy(WhenBusy::queue());
    let agent = built(agent.when_waiting(WhenWaiting::Supersede));
    stopped(agent.start(on("go", "s")).await);
    assert_eq!(finished(agent.start(on("next", "s")).await).answer, "fine");
}
