//! Order of journal writes, and failures to write.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{
    BoxFuture, Effect, Error, ErrorKind, EventKind, Exit, Journal, Key, MemoryJournal, Message, Middleware,
    ModelResponse, Result, RunCx, RunRequest, ToolBatch, ToolOutput, ToolRequest, ToolResults, Verdict, async_trait,
    journal::{Ack, Entry, EntryBody, JournalWriter},
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use futures::StreamExt;
use serde_json::json;
use tokio::time::Instant;

use crate::common::{FnTool, Log, finished, ms, tool};

/// Treatment of a batch.
enum Fate {
    Kept,
    KeptAfter(Duration),
    Refused,
    RefusedAfter(Duration),
    /// The batch is stored and acknowledged; then another process takes over the session.
    KeptAndTakenOver,
}

/// An in-memory journal that treats batches as a test configures, and records them.
#[derive(Clone)]
struct Scripted {
    inner: MemoryJournal,
    fate: Arc<dyn Fn(&EntryBody) -> Fate + Send + Sync>,
    batches: Arc<Mutex<Vec<Vec<EntryBody>>>>,
    is_anothers: Arc<AtomicBool>,
}

impl Scripted {
    /// Treats each batch as its first entry for which `fate` is not `Kept`.
    fn new(fate: impl Fn(&EntryBody) -> Fate + Send + Sync + 'static) -> Self {
        let (inner, fate) = (MemoryJournal::default(), Arc::new(fate));
        Self { inner, fate, batches: Arc::default(), is_anothers: Arc::default() }
    }

    fn batches(&self) -> Vec<Vec<EntryBody>> {
        self.batches.lock().expect("free").clone()
    }
}

struct Writer(Arc<dyn JournalWriter>, Scripted);

impl JournalWriter for Writer {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let bodies: Vec<_> = entries.iter().map(|entry| entry.body.clone()).collect();
        let fate = bodies.iter().map(|body| (self.1.fate)(body)).find(|fate| !matches!(fate, Fate::Kept));
        let full = || Err(Error::new(ErrorKind::Store, "the disk is full"));
        match fate {
            Some(Fate::Refused) => return Ack::Done(Some(full())),
            Some(Fate::RefusedAfter(delay)) => {
                let refused = Instant::now() + delay;
                return Ack::Later(Box::pin(async move {
                    tokio::time::sleep_until(refused).await;
                    full()
                }));
            }
            _ => {}
        }
        self.1.batches.lock().expect("free").push(bodies);
        let ack = self.0.append(entries);
        self.1.is_anothers.fetch_or(matches!(fate, Some(Fate::KeptAndTakenOver)), Ordering::SeqCst);
        match fate {
            Some(Fate::KeptAfter(delay)) => {
                let kept = Instant::now() + delay;
                Ack::Later(Box::pin(async move {
                    tokio::time::sleep_until(kept).await;
                    ack.await
                }))
            }
            _ => ack,
        }
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        let is_anothers = self.1.is_anothers.load(Ordering::SeqCst);
        Box::pin(async move { if is_anothers { Err(Error::new(ErrorKind::Store, "taken over")) } else { Ok(()) } })
    }
}

#[async_trait]
impl Journal for Scripted {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(Writer(self.inner.open(session, agent).await?, self.clone())))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.inner.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.inner.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.inner.delete(session).await
    }
}

fn is_intent(body: &EntryBody) -> bool {
    matches!(body, EntryBody::ToolStarted { .. })
}

/// Returns a tool that logs how many milliseconds after `begun` it ran.
fn timed(name: &'static str, begun: Instant, log: &Log) -> FnTool {
    let log = log.clone();
    tool(name, move |_| {
        log.note(format!("{name} at {}", begun.elapsed().as_millis()));
        async { Ok(ToolOutput::text("ok")) }
    })
}

fn on(journal: &Scripted, turns: impl IntoIterator<Item = Turn>) -> AgentBuilder {
    Agent::builder("a", ScriptedModel::new(turns)).store(journal.clone())
}

fn built(builder: AgentBuilder) -> Agent {
    builder.build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn the_intent_is_durable_before_the_effect_unless_there_is_none() {
    let journal = Scripted::new(|body| if is_intent(body) { Fate::KeptAfter(ms(50)) } else { Fate::Kept });
    let (log, begun) = (Log::default(), Instant::now());
    let turns = [Turn::call("1", "effect", json!({})), Turn::call("2", "pure", json!({})), Turn::text("done")];
    let agent = on(&journal, turns)
        .tool(timed("effect", begun, &log))
        .tool(timed("pure", begun, &log).with(|options| options.effect(Effect::Pure)));
    finished(built(agent).run("go").await);
    assert_eq!(log.seen(), ["effect at 50", "pure at 50"]);
    assert_eq!(begun.elapsed(), ms(100), "what was begun without waiting is waited for in the end");
}

/// Returns a journal that stores each batch after 50 milliseconds.
fn lagging() -> Scripted {
    Scripted::new(|_| Fate::KeptAfter(ms(50)))
}

/// Builds an agent with two steps with a tool of this effect, and an answer; each model call takes
/// 50 milliseconds.
fn two_steps(journal: &Scripted, effect: Effect) -> Agent {
    let turns = [Turn::call("1", "works", json!({})), Turn::call("2", "works", json!({})), Turn::text("done")];
    let works = tool("works", async |_| Ok(ToolOutput::text("ok"))).with(|options| options.effect(effect));
    built(on(journal, turns.map(|turn| turn.delay(ms(50)))).tool(works))
}

#[tokio::test(start_paused = true)]
async fn a_step_waits_for_the_journal_once_and_only_before_an_effect() {
    for (effect, waits) in [(Effect::AtMostOnce, 2), (Effect::Pure, 0)] {
        let mut took = Vec::new();
        let (prompt, journal) = (Scripted::new(|_| Fate::Kept), lagging());
        for journal in [&prompt, &journal] {
            let begun = Instant::now();
            finished(two_steps(journal, effect).run("go").await);
            took.push(begun.elapsed());
        }
        let begins_and_ends = 2;
        assert_eq!(took[1] - took[0], ms(50) * (begins_and_ends + waits), "{effect:?}");
        let batches: Vec<_> = journal.batches().iter().map(Vec::len).collect();
        assert_eq!(batches.len(), 6, "an answer with its intent, a result with its turn: {batches:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_come_in_the_order_in_which_things_are_done_however_slow_the_journal_is() {
    let mut told = Vec::new();
    for journal in [Scripted::new(|_| Fate::Kept), lagging()] {
        let run = two_steps(&journal, Effect::Pure).start(RunRequest::user("go").run_id("r").session("s"));
        let events: Vec<_> = run.map(|event| format!("{:?}", event.kind)).collect().await;
        told.push(events);
    }
    assert!(told[0].iter().any(|event| event.starts_with("StepStarted")), "{:?}", told[0]);
    assert_eq!(told[1], told[0]);
}

#[tokio::test(start_paused = true)]
async fn readers_are_told_as_soon_as_it_is_durable_though_nobody_waits_for_it() {
    let slow = tool("slow", async |_| {
        tokio::time::sleep(ms(500)).await;
        Ok(ToolOutput::text("ok"))
    });
    let agent = on(&lagging(), [Turn::call("1", "slow", json!({})), Turn::text("done")])
        .tool(slow.with(|options| options.effect(Effect::Pure)));
    let begun = Instant::now();
    let mut run = built(agent).start(RunRequest::user("go"));
    while let Some(event) = run.next().await {
        if let EventKind::ToolStarted { .. } = event.kind {
            assert_eq!(begun.elapsed(), ms(100), "the run's beginning, and the call's");
        }
    }
    finished(run.await);
}

/// Counts an answer, and takes long to inspect it.
struct Deliberates;

const COUNT: Key<u32> = Key::new("count");

#[async_trait]
impl Middleware for Deliberates {
    async fn after_model(&self, cx: &RunCx, _: &mut ModelResponse) -> Result<()> {
        cx.globals().update(&COUNT, |n| n.unwrap_or(0) + 1)?;
        tokio::time::sleep(ms(500)).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_while_a_hook_looks_at_it_and_what_the_hook_changed_when_it_is_through() {
    let journal = Scripted::new(|_| Fate::Kept);
    let agent = built(on(&journal, [Turn::text("done")]).middleware(Deliberates));
    let run = agent.start(RunRequest::user("go"));
    let meanwhile = async {
        tokio::time::sleep(ms(100)).await;
        journal.batches().pop()
    };
    let (end, kept) = tokio::join!(run, meanwhile);
    finished(end);
    let kept = kept.expect("there are batches");
    assert!(matches!(&kept[..], [EntryBody::ModelFinished { .. }]), "{kept:#?}");
    let changes = |body: &EntryBody| matches!(body, EntryBody::StateChanged { .. });
    let batches: Vec<_> = journal.batches().into_iter().filter(|batch| batch.iter().any(changes)).collect();
    let [accepted] = &batches[..] else { panic!("{batches:#?}") };
    assert!(matches!(accepted[0], EntryBody::ModelAccepted { .. }), "{accepted:#?}");
}

/// Counts its calls, and takes long wherever a step waits for a hook.
struct Counts;

impl Counts {
    fn seen(cx: &RunCx) -> Result<()> {
        cx.globals().update(&COUNT, |n| n.unwrap_or(0) + 1).map(drop)
    }
}

#[async_trait]
impl Middleware for Counts {
    async fn after_model(&self, cx: &RunCx, _: &mut ModelResponse) -> Result<()> {
        Self::seen(cx)
    }

    async fn before_tools(&self, _: &RunCx, _: &mut ToolBatch) -> Result<()> {
        tokio::time::sleep(ms(500)).await;
        Ok(())
    }

    async fn after_tool(&self, cx: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        Self::seen(cx)
    }

    async fn after_tools(&self, cx: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        Self::seen(cx)?;
        Ok(Verdict::Proceed)
    }

    async fn on_exit(&self, _: &RunCx, _: &mut Exit) -> Result<Verdict> {
        tokio::time::sleep(ms(500)).await;
        Ok(Verdict::Proceed)
    }
}

#[tokio::test(start_paused = true)]
async fn what_hooks_changed_is_kept_together_with_what_they_do_not_see_again() {
    let journal = Scripted::new(|_| Fate::Kept);
    let naps = tool("naps", async |req: ToolRequest| {
        tokio::time::sleep(ms(if &*req.call.id == "1" { 10 } else { 900 })).await;
        Ok(ToolOutput::text("ok"))
    });
    let turns = [Turn::calls([("1", "naps", json!({})), ("2", "naps", json!({}))]), Turn::text("done")];
    finished(built(on(&journal, turns).tool(naps).middleware(Counts)).run("go").await);
    let (mut seen, mut kept) = (0, 0);
    for batch in journal.batches() {
        for body in &batch {
            match body {
                EntryBody::ModelAccepted { .. } | EntryBody::ToolAnswered { .. } | EntryBody::TurnEnded { .. } => {
                    seen += 1;
                }
                EntryBody::StateChanged { globals, .. } => {
                    kept = globals["count"].as_ref().map_or(0, |n| n.as_u64().unwrap_or(0));
                }
                _ => {}
            }
        }
        assert_eq!(kept, seen, "a crash here would leave one without the other: {batch:#?}");
    }
    assert_eq!(seen, 5);
}

#[tokio::test(start_paused = true)]
async fn readers_are_told_of_what_another_task_says_behind_a_message_that_another_task_sent() {
    let begun = Instant::now();
    let slow = tool("slow", async |req: ToolRequest| {
        let cx = req.cx.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ms(300)).await;
            cx.emit(EventKind::Warning { message: "halfway".into() });
        });
        tokio::time::sleep(ms(1_000)).await;
        Ok(ToolOutput::text("ok"))
    });
    let agent = on(&lagging(), [Turn::call("1", "slow", json!({})), Turn::text("done")]).tool(slow);
    let mut run = built(agent).start(RunRequest::user("go"));
    let handle = run.handle();
    tokio::spawn(async move {
        tokio::time::sleep(ms(200)).await;
        handle.steer(Message::user("And?")).expect("it is under way");
    });
    let mut told = None;
    while let Some(event) = run.next().await {
        if let EventKind::Warning { .. } = event.kind {
            told = Some(begun.elapsed());
        }
    }
    let told = told.expect("it was said");
    assert!(told < ms(600), "{told:?}");
}

#[tokio::test]
async fn no_call_is_made_if_the_session_is_anothers_when_its_intent_is_acknowledged() {
    let journal = Scripted::new(|body| if is_intent(body) { Fate::KeptAndTakenOver } else { Fate::Kept });
    let log = Log::default();
    let turns = [Turn::calls([("1", "effect", json!({})), ("2", "effect", json!({}))]), Turn::text("done")];
    let agent = on(&journal, turns).tool(timed("effect", Instant::now(), &log));
    let e = built(agent).run("go").await.expect_err("it is another's");
    assert_eq!((e.kind(), e.message(), log.seen().len()), (ErrorKind::Store, "taken over", 0));
    let last = journal.batches().pop().expect("there are batches");
    assert!(last.iter().all(is_intent), "what came after the loss is kept: {last:?}");
}

#[tokio::test(start_paused = true)]
async fn readers_are_told_of_nothing_that_is_not_durable() {
    let journal = Scripted::new(|body| match body {
        EntryBody::ModelAccepted { .. } => Fate::KeptAfter(ms(50)),
        _ => Fate::Kept,
    });
    let begun = Instant::now();
    let mut run = built(on(&journal, [Turn::text("done")])).start(RunRequest::user("go"));
    while let Some(event) = run.next().await {
        let durable_at =
            if matches!(event.kind, EventKind::ModelAnswered { .. } | EventKind::RunEnded { .. }) { 50 } else { 0 };
        assert_eq!(begun.elapsed(), ms(durable_at), "{event:?}");
    }
    finished(run.await);
}

#[tokio::test]
async fn what_a_tool_changed_is_kept_together_with_its_result() {
    const NOTES: Key<String> = Key::new("notes");
    let journal = Scripted::new(|_| Fate::Kept);
    let writes = tool("writes", async |req: ToolRequest| {
        req.cx.globals().set(&NOTES, &"half".to_owned())?;
        tokio::task::yield_now().await;
        req.cx.globals().set(&NOTES, &"whole".to_owned())?;
        Ok(ToolOutput::text("ok"))
    });
    finished(
        built(on(&journal, [Turn::call("1", "writes", json!({})), Turn::text("done")]).tool(writes)).run("go").await,
    );
    let changes = |batch: &Vec<EntryBody>| batch.iter().any(|body| matches!(body, EntryBody::StateChanged { .. }));
    let batches: Vec<_> = journal.batches().into_iter().filter(changes).collect();
    let [batch] = &batches[..] else { panic!("{batches:#?}") };
    let [EntryBody::ToolFinished { .. }, EntryBody::StateChanged { globals, .. }] = &batch[..] else {
        panic!("{batch:#?}")
    };
    assert_eq!(globals["notes"], Some(json!("whole")), "a step that is not finished leaves nothing behind");
}

#[tokio::test]
async fn a_journal_that_fails_stops_the_run_before_the_effect() {
    let journal = Scripted::new(|body| if is_intent(body) { Fate::Refused } else { Fate::Kept });
    let log = Log::default();
    let calls = [("1", "effect", json!({})), ("2", "effect", json!({})), ("3", "effect", json!({}))];
    let agent = on(&journal, [Turn::calls(calls)]).tool(timed("effect", Instant::now(), &log));
    let e = built(agent).run("go").await.expect_err("fails");
    assert_eq!((e.kind(), e.message()), (ErrorKind::Store, "the disk is full"));
    assert!(log.seen().is_empty(), "nor did the siblings run, whose intents are not kept either");
    assert_eq!(e.checkpoint().expect("the run can go on").step, 1);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_refuses_a_result_fails_the_run_as_such_whatever_its_siblings_changed() {
    let journal = Scripted::new(|body| match body {
        EntryBody::ToolFinished { call_id, .. } if &**call_id == "1" => Fate::Refused,
        _ => Fate::Kept,
    });
    let writes = tool("writes", async |req: ToolRequest| {
        // Both have begun when the first one ends.
        tokio::time::sleep(ms(if &*req.call.id == "1" { 10 } else { 20 })).await;
        req.cx.globals().update(&COUNT, |n| n.unwrap_or(0) + 1)?;
        Ok(ToolOutput::text("ok"))
    });
    let calls = [("1", "writes", json!({})), ("2", "writes", json!({}))];
    let e = built(on(&journal, [Turn::calls(calls)]).tool(writes)).run("go").await.expect_err("fails");
    assert_eq!((e.kind(), e.message()), (ErrorKind::Store, "the disk is full"));
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_refuses_a_result_ends_the_calls_beside_it_whenever_it_says_so() {
    for (refused_after, at) in [(None, 10), (Some(ms(50)), 60)] {
        let journal = Scripted::new(move |body| match body {
            EntryBody::ToolFinished { .. } => refused_after.map_or(Fate::Refused, Fate::RefusedAfter),
            _ => Fate::Kept,
        });
        let naps = tool("naps", async |req: ToolRequest| {
            tokio::time::sleep(ms(if &*req.call.id == "1" { 10 } else { 3_600_000 })).await;
            Ok(ToolOutput::text("ok"))
        });
        let (calls, begun) = ([("1", "naps", json!({})), ("2", "naps", json!({}))], Instant::now());
        let e = built(on(&journal, [Turn::calls(calls)]).tool(naps)).run("go").await.expect_err("fails");
        assert_eq!((e.kind(), e.message()), (ErrorKind::Store, "the disk is full"));
        assert_eq!(begun.elapsed(), ms(at));
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_at_the_step_limit_is_not_waited_for_if_the_journal_refused_what_it_is_about() {
    let journal = Scripted::new(|body| match body {
        EntryBody::TurnEnded { .. } => Fate::RefusedAfter(ms(50)),
        _ => Fate::Kept,
    });
    let works = tool("works", async |_| Ok(ToolOutput::text("ok")));
    let turns = [Turn::call("1", "works", json!({})), Turn::text("summed up").delay(ms(5_000))];
    let agent = on(&journal, turns).tool(works).max_steps(1).final_answer(true);
    let begun = Instant::now();
    let e = built(agent).run("go").await.expect_err("fails");
    assert_eq!((e.kind(), e.message(), begun.elapsed()), (ErrorKind::Store, "the disk is full", ms(50)));
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_failed_for_one_run_of_a_tree_is_trusted_by_none() {
    let journal = Scripted::new(|body| match body {
        EntryBody::ToolStarted { name, .. } if &**name == "first" => Fate::Refused,
        _ => Fate::Kept,
    });
    let log = Log::default();
    let helper = |name: &'static str, wait: u64| {
        let turns = [Turn::call("k", name, json!({})).delay(ms(wait)), Turn::text("helped")];
        let tool = timed(name, Instant::now(), &log);
        built(Agent::builder(name, ScriptedModel::new(turns)).tool(tool))
    };
    let delegation = Delegation::new().to("first", "", helper("first", 1)).to("second", "", helper("second", 10));
    let ask = |id, key| (id, "delegate", json!({"agent": key, "message": "help"}));
    let boss = on(&journal, [Turn::calls([ask("p1", "first"), ask("p2", "second")])]).middleware(delegation);
    let e = built(boss).run("go").await.expect_err("fails");
    assert_eq!(e.kind(), ErrorKind::Store);
    assert!(log.seen().is_empty(), "{:?}", log.seen());
}

#[tokio::test]
async fn a_suspended_run_whose_end_cannot_be_written_still_hands_out_its_checkpoint() {
    let journal =
        Scripted::new(|body| if matches!(body, EntryBody::RunEnded { .. }) { Fate::Refused } else { Fate::Kept });
    let asking =
        tool("asking", |req: ToolRequest| async move { req.ask::<String>("input", json!(null)).map(ToolOutput::text) });
    let e =
        built(on(&journal, [Turn::call("1", "asking", json!({}))]).tool(asking)).run("go").await.expect_err("fails");
    assert_eq!(e.kind(), ErrorKind::Store);
    assert_eq!(e.checkpoint().expect("the run can go on").questions[0].id, "1/input");
}
