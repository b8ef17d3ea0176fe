//! Deadlines: which one passed, which answers are recorded, and how the run ends.

use std::{sync::Arc, time::Duration};

use agent_core::{
    BoxFuture, Deadlines, Error, ErrorKind, Exit, ExitReason, Flow, Journal, MemoryJournal, Message, Middleware,
    ModelRequest, ModelResponse, Result, RunCx, RunEnd, RunRequest, Tool, ToolBatch, ToolResults, Toolset, Verdict,
    WhenBusy, async_trait,
    journal::{Ack, Entry, JournalWriter},
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use serde_json::json;
use tokio::time::Instant;

use crate::common::{Log, finished, hangs, ms, results, slow};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn agent(turns: impl IntoIterator<Item = Turn>, deadlines: Deadlines) -> AgentBuilder {
    Agent::builder("a", ScriptedModel::new(turns)).deadlines(deadlines)
}

fn told(e: &Error) -> (ErrorKind, Option<&str>, bool) {
    (e.kind(), e.context("deadline"), e.context("changed by").is_some_and(|change| change.contains("Deadlines::")))
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_too_late_ends_with_its_own_exit_reason_and_every_call_answered() {
    let (log, began) = (Log::default(), Instant::now());
    let turns = [Turn::calls([("c1", "hang", json!({})), ("c2", "nap", json!({}))])];
    let agent = agent(turns, Deadlines::new().run(secs(10))).tool(hangs("hang", &log)).tool(slow("nap", 1_000, &log));
    let end = finished(agent.build().expect("builds").run("go").await);
    assert_eq!((end.reason, began.elapsed()), (ExitReason::Deadline, secs(10)));
    let results = results(&end.history);
    assert_eq!(results[0], ("c1".into(), "The call was cut off: the run's time of 10s was up.".into(), true));
    assert_eq!(results[1], ("c2".into(), "c2".into(), false), "what was done is kept");
    assert!(log.seen().contains(&"c1 dropped".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_model_call_beyond_the_runs_time_ends_the_run_and_one_beyond_the_steps_fails_it() {
    let slow = || [Turn::text("a b c").delay(secs(20))];
    let end = finished(agent(slow(), Deadlines::new().run(secs(10))).build().expect("builds").run("go").await);
    assert_eq!((end.reason, end.steps), (ExitReason::Deadline, 0));
    let e = agent(slow(), Deadlines::new().step(secs(10))).build().expect("builds").run("go").await.expect_err("late");
    assert_eq!(told(&e), (ErrorKind::Timeout, Some("step"), true));
    assert!(e.checkpoint().is_some() && e.message().contains("the step took longer than 10s"), "{e}");
}

#[tokio::test(start_paused = true)]
async fn a_steps_tool_calls_are_cut_off_and_the_run_goes_on() {
    let turns = [Turn::call("c", "hang", json!({})), Turn::text("done")];
    let agent = agent(turns, Deadlines::new().step(secs(10))).tool(hangs("hang", &Log::default()));
    let end = finished(agent.build().expect("builds").run("go").await);
    assert_eq!(end.answer, "done");
    assert_eq!(results(&end.history)[0].1, "The call was cut off: the step took longer than 10s.");
}

#[tokio::test(start_paused = true)]
async fn a_stream_must_begin_in_time_and_go_on_in_time() {
    let call = async |pause: u64, deadlines: Deadlines| {
        let agent = agent([Turn::text("a b c").delay(ms(pause))], deadlines).streaming(true);
        agent.build().expect("builds").run("go").await
    };
    let late = |e: Error, which| assert_eq!(told(&e), (ErrorKind::Timeout, Some(which), true), "{e}");
    late(call(2_000, Deadlines::new().first_chunk(secs(1))).await.expect_err("late"), "first_chunk");
    late(call(2_000, Deadlines::new().chunk_gap(secs(1))).await.expect_err("late"), "chunk_gap");
    finished(call(2_000, Deadlines::new().first_chunk(secs(3))).await);
    finished(call(2_000, Deadlines::new().first_chunk(secs(3)).chunk_gap(secs(3))).await);
}

#[tokio::test(start_paused = true)]
async fn the_applications_time_for_a_tool_beats_the_tools_own_which_beats_the_time_for_all() {
    for (deadlines, own, lasts) in [
        (Deadlines::new().tool(secs(2)), None, 2),
        (Deadlines::new().tool(secs(2)), Some(secs(5)), 5),
        (Deadlines::new().tool(secs(2)).tool_named("hang", secs(7)), Some(secs(5)), 7),
    ] {
        let (log, began) = (Log::default(), Instant::now());
        let tool = hangs("hang", &log).with(|mut options| {
            options.timeout = own;
            options
        });
        let turns = [Turn::call("c", "hang", json!({})), Turn::text("done")];
        let end = finished(agent(turns, deadlines).tool(tool).build().expect("builds").run("go").await);
        assert_eq!((end.answer.as_str(), began.elapsed()), ("done", secs(lasts)));
        assert!(results(&end.history)[0].1.contains("timed out"), "the model is told");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_has_no_more_time_than_its_caller_has_left() {
    let helper = agent([Turn::text("a b c").delay(secs(20))], Deadlines::new().run(secs(60))).build().expect("builds");
    let ask = Turn::call("d", "delegate", json!({"agent": "helper", "message": "go"})).delay(secs(1));
    let boss =
        agent([ask], Deadlines::new().run(secs(10))).middleware(Delegation::new().to("helper", "Helps.", helper));
    let began = Instant::now();
    let end = finished(boss.build().expect("builds").start(RunRequest::user("go")).await);
    assert_eq!((end.reason, began.elapsed()), (ExitReason::Deadline, secs(10)));
    let answer = &results(&end.history)[0].1;
    assert!(answer.contains("ran out of time"), "{answer}");
}

/// A model, a tool set and a middleware that hangs in one place.
#[derive(Clone)]
struct Hangs(&'static str);

impl Hangs {
    async fn at(&self, place: &str) -> Result<()> {
        if self.0 == place { std::future::pending().await } else { Ok(()) }
    }
}

#[async_trait]
impl Toolset for Hangs {
    async fn tools(&self, _: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        self.at("tools").await.map(|()| Vec::new())
    }

    async fn warm_up(&self) -> Result<()> {
        self.at("warm_up").await
    }
}

#[async_trait]
impl Middleware for Hangs {
    async fn before_agent(&self, _: &RunCx) -> Result<()> {
        self.at("before_agent").await
    }

    async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        self.at("before_model").await.map(|()| Flow::Continue)
    }

    async fn before_tools(&self, _: &RunCx, _: &mut ToolBatch) -> Result<()> {
        self.at("before_tools").await
    }

    async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        self.at("after_tools").await.map(|()| Verdict::Proceed)
    }

    async fn on_exit(&self, _: &RunCx, _: &mut Exit) -> Result<Verdict> {
        self.at("on_exit").await.map(|()| Verdict::Proceed)
    }

    async fn after_agent(&self, _: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        self.at("after_agent").await
    }
}

/// Runs an agent with a deadline of ten seconds that hangs in this place.
async fn hanging(place: &'static str) -> Result<RunEnd> {
    let turns = [Turn::call("c", "nap", json!({})), Turn::text("done")];
    let agent = agent(turns, Deadlines::new().run(secs(10))).tool(slow("nap", 1_000, &Log::default()));
    agent.toolset(Hangs(place)).middleware(Hangs(place)).build().expect("builds").run("go").await
}

#[tokio::test(start_paused = true)]
async fn the_runs_deadline_holds_wherever_a_run_waits() {
    let cut_off = "The call was cut off: the run's time of 10s was up.";
    for (place, steps, told) in [
        ("warm_up", 0, None),
        ("before_agent", 0, None),
        ("tools", 0, None),
        ("before_model", 0, None),
        ("before_tools", 1, Some(cut_off)),
        ("after_tools", 1, Some("c")),
        ("on_exit", 2, Some("c")),
    ] {
        let began = Instant::now();
        let end = finished(hanging(place).await);
        assert_eq!((&end.reason, began.elapsed()), (&ExitReason::Deadline, secs(10)), "{place}");
        let results = results(&end.history);
        let text = results.first().map(|(_, text, _)| text.as_str());
        assert_eq!(
            (end.steps, text, end.history.iter().next().map(Message::role)),
            (steps, told, Some("user")),
            "{place}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_to_do_when_the_time_is_up_has_five_seconds_more() {
    let began = Instant::now();
    let e = hanging("after_agent").await.expect_err("the hook did not do its work");
    assert_eq!((told(&e), began.elapsed()), ((ErrorKind::Timeout, Some("run"), true), secs(15)));
    assert!(e.context("middleware").is_some_and(|name| name.ends_with("Hangs")), "{e}");
}

/// A journal that accepts entries and never acknowledges that they are durable.
#[derive(Default)]
struct NeverDurable(MemoryJournal);

#[async_trait]
impl Journal for NeverDurable {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        struct Writer(Arc<dyn JournalWriter>);

        impl JournalWriter for Writer {
            fn append(&self, entries: Vec<Entry>) -> Ack {
                drop(self.0.append(entries));
                Ack::Later(Box::pin(std::future::pending()))
            }

            fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
                self.0.verify_lease()
            }
        }

        Ok(Arc::new(Writer(self.0.open(session, agent).await?)))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.0.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.0.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.0.delete(session).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_holds_no_run_beyond_its_deadline_which_fails_since_its_end_is_not_kept() {
    let began = Instant::now();
    let agent = agent([Turn::text("done")], Deadlines::new().run(secs(10))).store(NeverDurable::default());
    let e = agent.build().expect("builds").start(RunRequest::user("go").session("s")).await.expect_err("not kept");
    assert_eq!((told(&e), began.elapsed()), ((ErrorKind::Timeout, Some("run"), true), secs(15)));
}

/// A journal that hangs when it is opened, or when it is read.
struct Hanging {
    store: MemoryJournal,
    opens: bool,
}

#[async_trait]
impl Journal for Hanging {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        match self.opens {
            true => self.store.open(session, agent).await,
            false => std::future::pending().await,
        }
    }

    async fn read(&self, _: &str, _: u64, _: usize) -> Result<Vec<Arc<Entry>>> {
        std::future::pending().await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        std::future::pending().await
    }

    async fn delete(&self, _: &str) -> Result<bool> {
        std::future::pending().await
    }
}

/// Requests that begin in a store that hangs: new messages that reject, steer, queue or fork, and a
/// recovery.
fn beginnings() -> Vec<RunRequest> {
    let new = |busy| RunRequest::user("go").session("s").when_busy(busy);
    let recover = RunRequest::recover("s", [] as [(String, serde_json::Value); 0]);
    vec![new(WhenBusy::Reject), new(WhenBusy::Steer), new(WhenBusy::queue()), new(WhenBusy::Fork), recover]
}

fn over_a_hanging_store(opens: bool) -> Agent {
    let store = Hanging { store: MemoryJournal::default(), opens };
    agent([Turn::text("done")], Deadlines::new().run(secs(60))).store(store).build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn a_runs_deadline_holds_while_its_store_is_opened_and_read() {
    for opens in [false, true] {
        for request in beginnings() {
            let began = Instant::now();
            let end = tokio::time::timeout(secs(3_600), over_a_hanging_store(opens).start(request)).await;
            let e = end.expect("the run does not hang").expect_err("it did not begin");
            assert_eq!((told(&e), began.elapsed()), ((ErrorKind::Timeout, Some("run"), true), secs(60)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_while_its_store_is_opened_and_read() {
    for opens in [false, true] {
        for request in beginnings() {
            let (began, run) = (Instant::now(), over_a_hanging_store(opens).start(request));
            let handle = run.handle();
            let cancel = async {
                tokio::time::sleep(ms(10)).await;
                handle.cancel();
            };
            let e = tokio::join!(run, cancel).0.expect_err("it did not begin");
            assert_eq!((e.kind(), began.elapsed()), (ErrorKind::Cancelled, ms(10)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_store_takes_to_open_counts_as_the_runs() {
    let agent = agent([Turn::text("a b c").delay(secs(20))], Deadlines::new().run(secs(10))).store(Slow::default());
    let began = Instant::now();
    let end = finished(agent.build().expect("builds").start(RunRequest::user("go").session("s")).await);
    assert_eq!((end.reason, began.elapsed()), (ExitReason::Deadline, secs(10)));
}

/// A journal that takes four seconds to open.
#[derive(Default)]
struct Slow(MemoryJournal);

#[async_trait]
impl Journal for Slow {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        tokio::time::sleep(secs(4)).await;
        self.0.open(session, agent).await
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.0.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.0.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.0.delete(session).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_to_do_in_a_run_that_was_cancelled_has_five_seconds_and_the_checkpoint_is_kept() {
    let turns = [Turn::text("slow").delay(secs(1_000))];
    let agent = agent(turns, Deadlines::new()).middleware(Hangs("after_agent")).build().expect("builds");
    let (began, run) = (Instant::now(), agent.start(RunRequest::user("go")));
    let handle = run.handle();
    let cancel = async {
        tokio::time::sleep(secs(1)).await;
        handle.cancel();
    };
    let (end, ()) = tokio::join!(run, cancel);
    assert_eq!((end.expect("it is cancelled").as_str(), began.elapsed()), ("cancelled", secs(6)));
}
