//! Runs are replayed from their journal, forked at a step, compared, and not resumed from an
//! outdated checkpoint.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use agent_core::{
    Checkpoint, Effect, Error, ErrorKind, Event, EventKind, Flow, History, Journal, Key, MemoryJournal, Message,
    Middleware, ModelRequest, ModelResponse, Result, RunCx, RunRequest, StateField, StateSchema, ToolOutput, Usage,
    journal::{EntryBody, Recording, diff},
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use futures::StreamExt;
use serde_json::json;

use crate::common::{carried_over, finished, hooks, stopped, tool};

const COUNT: Key<u32> = Key::new("count");

/// Counts actual calls.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicU32>);

impl Calls {
    fn so_far(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

fn with_tools(name: &str, turns: Vec<Turn>, calls: &Calls) -> AgentBuilder {
    let (works, breaks) = (calls.clone(), calls.clone());
    let works = tool("works", move |req| {
        works.0.fetch_add(1, Ordering::SeqCst);
        async move {
            req.cx.globals().update(&COUNT, |n| n.unwrap_or(0) + 1)?;
            Ok(ToolOutput::value(json!({"note": [req.call.id], "text": "it works"})))
        }
    });
    let breaks = tool("breaks", move |_| {
        breaks.0.fetch_add(1, Ordering::SeqCst);
        async { Err(Error::tool("it broke")) }
    });
    Agent::builder(name, ScriptedModel::new(turns))
        .state(StateSchema::default().key("notes", StateField::of::<Vec<String>>()))
        .tool(works.with(|o| o.writes("notes", Some("note"))))
        .tool(breaks)
}

fn turns() -> Vec<Turn> {
    vec![
        Turn::calls([("a", "works", json!({})), ("b", "breaks", json!({}))]),
        Turn::calls([("c", "delegate", json!({"agent": "helper", "message": "help"}))]),
        Turn::text("done"),
    ]
}

fn tree(turns: Vec<Turn>, journal: &MemoryJournal, calls: &Calls) -> AgentBuilder {
    let helper = with_tools("helper", vec![Turn::call("h", "works", json!({})), Turn::text("helped")], calls);
    let helper = helper.build().expect("builds");
    with_tools("root", turns, calls).middleware(Delegation::new().to("helper", "Helps.", helper)).store(journal.clone())
}

/// Returns the contents of the durable events, without positions.
fn lasting(events: Vec<Event>) -> Vec<String> {
    let passing = |event: &Event| matches!(event.kind, EventKind::Chunk(_) | EventKind::StepStarted { .. });
    events.into_iter().filter(|event| !passing(event)).map(|e| format!("{} {:?}", e.ids.run_id, e.kind)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_replay_gives_the_same_end_and_the_same_events_and_calls_nothing() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let agent = tree(turns(), &journal, &calls).build().expect("builds");
    let mut run = agent.start(RunRequest::user("go").session("s").state("notes", json!(["old"])));
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let end = finished(run.await);
    let (made, kept) = (calls.so_far(), journal.read("s", 0, 999).await.expect("reads").len());

    let silent = tree(vec![], &journal, &calls).build().expect("builds");
    let mut run = silent.start(RunRequest::replay("s"));
    let mut again = Vec::new();
    while let Some(event) = run.next().await {
        again.push(event);
    }
    assert_eq!(finished(run.await), end);
    assert_eq!(lasting(again), lasting(events));
    assert_eq!(calls.so_far(), made, "no tool was called");
    assert_eq!(journal.read("s", 0, 999).await.expect("reads").len(), kept, "nothing was written");
}

#[tokio::test(start_paused = true)]
async fn an_older_run_is_replayed_by_its_id_and_a_sub_agents_run_by_that_agent() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let agent = |turns| tree(turns, &journal, &calls).build().expect("builds");
    let first = finished(agent(turns()).start(RunRequest::user("go").session("s")).await);
    finished(agent(vec![Turn::text("later")]).start(RunRequest::user("more").session("s")).await);
    let made = calls.so_far();

    let older = RunRequest::replay("s").run_id(first.ids.run_id.clone());
    assert_eq!(finished(agent(vec![]).start(older).await), first);

    let entries = journal.read("s", 0, 999).await.expect("reads");
    let below = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::RunStarted { ids, .. } if ids.depth == 1 => Some(ids.run_id.clone()),
        _ => None,
    });
    let helper = with_tools("helper", vec![], &calls).store(journal.clone()).build().expect("builds");
    let helped = finished(helper.start(RunRequest::replay("s").run_id(below.expect("a sub-agent ran"))).await);
    assert_eq!((helped.answer.as_str(), helped.steps, &helped.tool_calls["works"]), ("helped", 2, &1));
    assert_eq!(calls.so_far(), made, "no tool was called");
    let e = helper.start(RunRequest::replay("s").run_id("nobody's")).await.expect_err("there is none");
    assert!(e.message().contains("session 's' holds no run 'nobody's'"), "{e}");
}

/// Calls a side model: within a decision, or not.
struct Opinion {
    model: ScriptedModel,
    decides: bool,
}

#[agent_core::async_trait]
impl Middleware for Opinion {
    fn name(&self) -> &str {
        "opinion"
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let asks = async {
            let mut request = ModelRequest::new(cx.clone());
            request.messages = History::from_messages([Message::user("Well?")])?;
            Ok(cx.call_model(&self.model, request).await?.message.text().into())
        };
        if self.decides {
            cx.decide("opinion", asks).await?
        } else {
            asks.await?
        };
        Ok(Flow::Continue)
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_counts_what_a_decision_cost_and_asks_nobody_outside_of_one() {
    for decides in [true, false] {
        let journal = MemoryJournal::default();
        let agent = |turns: Vec<Turn>, opinions: Vec<Turn>| {
            let opinion = Opinion { model: ScriptedModel::new(opinions), decides };
            let builder = Agent::builder("a", ScriptedModel::new(turns)).middleware(opinion).store(journal.clone());
            builder.build().expect("builds")
        };
        let asked = agent(vec![Turn::text("done")], vec![Turn::text("Fine.").usage(Usage::new(7, 3))]);
        let end = finished(asked.start(RunRequest::user("go").session("s")).await);
        assert_eq!(end.usage.calls, 2);
        let replayed = agent(vec![], vec![]).start(RunRequest::replay("s")).await;
        match decides {
            true => assert_eq!(finished(replayed), end),
            false => assert!(replayed.expect_err("asks").message().contains("belongs into decide(..)")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_takes_another_path_says_at_which_step_and_how() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let agent = tree(turns(), &journal, &calls).build().expect("builds");
    finished(agent.start(RunRequest::user("go").session("s")).await);

    let louder = hooks::after_tool(|_, _, out| {
        *out = ToolOutput::text(out.to_text().to_uppercase());
        Ok(())
    });
    let changed = tree(vec![], &journal, &calls).middleware(louder).build().expect("builds");
    let e = changed.start(RunRequest::replay("s")).await.expect_err("another path");
    assert_eq!((e.kind(), e.context("step")), (ErrorKind::NonDeterminism, Some("1")));
    assert!(e.message().contains("the result of call 'a'") && e.message().contains("IT WORKS"), "{e}");

    let shorter = tree(vec![], &journal, &calls).max_steps(1).build().expect("builds");
    let e = shorter.start(RunRequest::replay("s")).await.expect_err("another path");
    assert!(e.message().contains("step 2") && e.message().contains("+ step_limit"), "{e}");
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_run_is_replayed_as_far_as_it_came() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let fails = || vec![turns().remove(0), Turn::error(|| Error::new(ErrorKind::Provider, "down"))];
    let agent = tree(fails(), &journal, &calls).build().expect("builds");
    let e = agent.start(RunRequest::user("go").session("s")).await.expect_err("fails");
    let stood = e.checkpoint().expect("where it stood").clone();

    let silent = tree(vec![], &journal, &calls).build().expect("builds");
    let (how, stands) = stopped(silent.start(RunRequest::replay("s")).await);
    assert_eq!((how, &stands.history, stands.step), ("interrupted", &stood.history, stood.step));
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_on_from_a_step_in_a_session_of_its_own_and_the_old_one_stays() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let agent = tree(turns(), &journal, &calls).build().expect("builds");
    finished(agent.start(RunRequest::user("go").session("s")).await);
    let before = journal.read("s", 0, 999).await.expect("reads");

    let other = tree(vec![Turn::text("in another way")], &journal, &calls).build().expect("builds");
    let mut fork = other.fork("s", 1, "forked").await.expect("it came that far");
    assert_eq!((fork.step, fork.history.len()), (1, 4), "the user, one turn with two results");
    assert_eq!((&fork.state["notes"], &fork.globals.as_ref().expect("root")["count"]), (&json!(["a"]), &json!(1)));
    fork.edit(0, Message::user("go elsewhere")).expect("paired");
    let end = finished(other.start(RunRequest::resume(fork, [])).await);
    assert_eq!((end.answer.as_str(), end.steps), ("in another way", 2));

    let kept = journal.index("forked").await.expect("folds").look(|index| index.view("root"));
    assert_eq!((&kept.history, kept.globals["count"].clone()), (&end.history, json!(1)));
    assert_eq!(kept.history.iter().next().map(Message::text), Some("go elsewhere".into()));
    assert_eq!(journal.read("s", 0, 999).await.expect("reads"), before, "the old session is as it was");

    let e = other.fork("s", 1, "forked").await.expect_err("there is one");
    assert!(e.message().contains("there is a session 'forked'"), "{e}");
    let e = other.fork("s", 9, "new").await.expect_err("too far");
    assert!(e.message().contains("cannot be forked at step 9"), "{e}");
    let whole = other.fork("s", 0, "anew").await.expect("the beginning");
    assert_eq!((whole.step, whole.history.len(), whole.state.is_empty()), (0, 1, true));
}

#[tokio::test(start_paused = true)]
async fn any_run_of_a_session_is_forked_by_its_id_without_what_came_after_it() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let mut two = turns();
    two.extend([Turn::call("d", "works", json!({})), Turn::text("again")]);
    let agent = tree(two, &journal, &calls).build().expect("builds");
    let first = finished(agent.start(RunRequest::user("one").session("s")).await);
    let second = finished(agent.start(RunRequest::user("two").session("s")).await);
    let session = agent.sessions().expect("has a store").named("s", "root");
    session.undo(&second.ids.run_id).await.expect("undoes");

    let texts = |fork: &Checkpoint| fork.history.iter().map(Message::text).collect::<Vec<_>>();
    let id = first.ids.run_id.clone();
    let end = agent.fork_run("s", &id, 3, "a").await.expect("the end of the first run");
    assert_eq!((texts(&end).len(), texts(&end).last().map(String::as_str)), (7, Some("done")));
    assert_eq!(end.globals.as_ref().expect("root")["count"], json!(2), "with the helper's, without the second run's");
    let start = agent.fork_run("s", &id, 0, "a").await.expect("its beginning");
    assert_eq!((texts(&start), start.state.is_empty()), (vec!["one".to_owned()], true));
    let undone = agent.fork_run("s", &second.ids.run_id, 1, "a").await.expect("undone since, and recorded");
    assert_eq!((undone.history.len(), undone.globals.as_ref().expect("root")["count"].clone()), (10, json!(3)));
    assert_eq!(texts(&undone)[7], "two");

    let ids = |entry: &EntryBody| match entry {
        EntryBody::RunStarted { ids, .. } if ids.depth == 1 => Some(ids.clone()),
        _ => None,
    };
    let entries = journal.read("s", 0, 999).await.expect("reads");
    let below = entries.iter().find_map(|entry| ids(&entry.body)).expect("a helper ran");
    let fork = agent.fork_run("s", &below.run_id, 0, "a").await.expect("a sub-agent's");
    assert_eq!((texts(&fork), &*fork.ids.agent_id, fork.ids.depth), (vec!["help".to_owned()], "helper", 0));

    let e = agent.fork_run("s", "nobody", 0, "a").await.expect_err("there is none");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("no run 'nobody'"), "{e}");
    let other = tree(vec![Turn::text("in another way")], &journal, &calls).build().expect("builds");
    let mut fork = other.fork_run("s", &id, 1, "forked").await.expect("it came that far");
    fork.edit(0, Message::user("go elsewhere")).expect("paired");
    assert_eq!(finished(other.start(RunRequest::resume(fork, [])).await).answer, "in another way");
}

#[tokio::test(start_paused = true)]
async fn the_first_place_where_two_runs_differ_is_found() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    for (session, last) in [("one", "done"), ("two", "done"), ("three", "well done")] {
        let mut turns = turns();
        turns[2] = Turn::text(last);
        let agent = tree(turns, &journal, &calls).build().expect("builds");
        finished(agent.start(RunRequest::user("go").session(session)).await);
    }
    let read = async |session| Recording::read(&journal, session, "root").await.expect("reads");
    let (one, two, three) = (read("one").await, read("two").await, read("three").await);
    assert_eq!(diff(&one, &two), None);
    let parts = diff(&one, &three).expect("they differ");
    assert_eq!((parts.step, parts.what.as_str()), (3, "the model's answer"));
    assert!(parts.to_string().contains("well done"), "{parts}");
}

/// Pauses a run after its first step, and returns its checkpoint.
async fn paused(agent: &Agent, session: &str) -> Checkpoint {
    let run = agent.start(RunRequest::user("go").session(session));
    run.handle().pause();
    stopped(run.await).1
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_a_run_went_on_from_is_refused_unless_one_means_to_go_back() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let agent = |turns| tree(turns, &journal, &calls).build().expect("builds");
    let old = paused(&agent(vec![]), "s").await;
    let run = agent(turns()).start(RunRequest::resume(carried_over(&old), []));
    finished(run.await);

    let e = agent(turns()).start(RunRequest::resume(old.clone(), [])).await.expect_err("out of date");
    assert_eq!(e.kind(), ErrorKind::Stale);
    assert!(e.message().contains("the run is finished") && e.message().contains("allow_rewind()"), "{e}");

    let back = RunRequest::resume(old, []).allow_rewind();
    let end = finished(agent(vec![Turn::text("again")]).start(back).await);
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("root"));
    assert_eq!((kept.history, end.answer.as_str()), (end.history, "again"));
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_of_an_earlier_attempt_or_an_earlier_run_is_refused() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let agent = tree(turns(), &journal, &calls).build().expect("builds");
    let first = paused(&agent, "s").await;
    let run = agent.start(RunRequest::resume(first.clone(), []));
    run.handle().pause();
    let second = stopped(run.await).1;
    let e = agent.start(RunRequest::resume(first, [])).await.expect_err("out of date");
    assert!(e.message().contains("went on from a newer one"), "{e}");

    finished(agent.start(RunRequest::user("something else").session("s")).await);
    let e = agent.start(RunRequest::resume(second, [])).await.expect_err("out of date");
    assert!(e.message().contains("another run in its session"), "{e}");
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_a_store_does_not_know_is_kept_there_from_then_on() {
    let (here, there, calls) = (MemoryJournal::default(), MemoryJournal::default(), Calls::default());
    let stands = paused(&tree(vec![], &here, &calls).build().expect("builds"), "s").await;
    let agent = tree(turns(), &there, &calls).build().expect("builds");
    let end = finished(agent.start(RunRequest::resume(stands, [])).await);
    assert_eq!(there.index("s").await.expect("folds").look(|index| index.view("root")).history, end.history);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_changed_refuses_a_checkpoint_with_a_diff_or_migrates_it() {
    let journal = MemoryJournal::default();
    let old = || Agent::builder("a", ScriptedModel::new([])).store(journal.clone());
    let schema = |key| StateSchema::default().key(key, StateField::of::<u32>());
    let first = old().state(schema("count")).build().expect("builds");
    let run = first.start(RunRequest::user("go").session("s").state("count", 3));
    run.handle().pause();
    let stands = stopped(run.await).1;

    let new = || {
        Agent::builder("a", ScriptedModel::new([Turn::text("done")]))
            .state(schema("total"))
            .store(journal.clone())
            .tool(crate::common::double("double"))
    };
    let refuses = new().build().expect("builds");
    let e = refuses.start(RunRequest::resume(stands, [])).await.expect_err("another agent");
    assert!(e.message().contains("- tools: \n+ tools: double"), "{e}");

    let migrates = new().migrate(|checkpoint| {
        let count = checkpoint.state.remove("count").unwrap_or_default();
        checkpoint.state.insert("total".into(), count);
        Ok(())
    });
    let end = finished(migrates.build().expect("builds").start(RunRequest::recover("s", [])).await);
    assert_eq!(end.state["total"], json!(3));
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_keeps_what_the_siblings_of_the_failed_call_gave() {
    let (journal, calls) = (MemoryJournal::default(), Calls::default());
    let once = |n: &Calls, name: &str, fails: bool| {
        let n = n.clone();
        tool(name, move |_| {
            let first = n.0.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if fails && first { Err(Error::tool("no")) } else { Ok(ToolOutput::text("yes")) } }
        })
        .with(|o| o.effect(if fails { Effect::Idempotent } else { Effect::AtMostOnce }))
    };
    let (good, bad) = (calls, Calls::default());
    let agent = |turns: Vec<Turn>| {
        Agent::builder("a", ScriptedModel::new(turns))
            .tools([Arc::new(once(&good, "good", false)) as _, Arc::new(once(&bad, "bad", true)) as _])
            .raise_tool_errors()
            .store(journal.clone())
            .build()
            .expect("builds")
    };
    let turn = Turn::calls([("g", "good", json!({})), ("b", "bad", json!({}))]);
    let e = agent(vec![turn]).start(RunRequest::user("go").session("s")).await.expect_err("fails");
    assert_eq!(e.context("completed"), Some("g"));
    finished(agent(vec![Turn::text("done")]).start(RunRequest::recover("s", [])).await);
    assert_eq!((good.so_far(), bad.so_far()), (1, 2), "the good one is not done again");
}
