//! Sessions: persistence from one run to the next, in memory and in SQLite.

mod busy;
mod conversations;
mod editing;
mod listing;
mod reading;
mod steering;

use std::sync::{Arc, Mutex};

use agent_core::{
    Error, ErrorKind, ExitReason, GlobalStorage, Journal, Key, Message, RunRequest, ToolOutput, ToolRequest, Usage,
    WhenWaiting,
    journal::{Entry, EntryBody, RunStatus},
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::json;
use tokio::sync::Notify;

use crate::common::{FnTool, Log, double, finished, hangs, hooks, results, roles, stopped, tool};

/// Instantiates each claim for every journal.
macro_rules! claims {
    ($($claim:ident),* $(,)?) => {
        mod in_memory {
            $(
                #[tokio::test]
                async fn $claim() {
                    super::$claim(agent_core::MemoryJournal::default()).await;
                }
            )*
        }

        mod in_sqlite {
            $(
                #[tokio::test]
                async fn $claim() {
                    let dir = tempfile::tempdir().expect("a folder");
                    let journal = agent_store::SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
                    super::$claim(journal).await;
                }
            )*
        }
    };
}

claims![
    a_second_run_of_a_session_continues_the_first,
    sessions_do_not_see_each_other_and_a_run_without_one_sees_none,
    storage_is_kept_with_the_session_unless_it_is_given,
    a_session_is_busy_for_the_same_agent_and_free_when_the_run_is_over,
    a_context_that_somebody_kept_does_not_hold_the_session,
    agents_with_different_ids_share_a_session_at_once_and_keep_their_own_histories,
    a_cancelled_run_leaves_a_history_that_the_next_run_continues,
    a_failed_run_leaves_a_history_that_the_next_run_continues,
    a_question_that_is_open_refuses_new_messages_unless_they_supersede_it,
    a_question_that_was_undone_refuses_nobody,
    a_run_that_was_gone_on_with_is_one_run_in_the_session,
    what_happens_is_written_down_in_order,
    what_is_undone_is_gone_for_the_next_run,
];

const VISITS: Key<u32> = Key::new("visits");

fn visit() -> FnTool {
    tool("visit", async |req: ToolRequest| {
        let n = req.cx.globals().update(&VISITS, |n| n.unwrap_or(0) + 1)?;
        Ok(ToolOutput::text(format!("visit {n}")))
    })
}

fn on(text: &str, session: &str) -> RunRequest {
    RunRequest::user(text).session(session)
}

fn agent(model: &ScriptedModel, journal: &(impl Journal + Clone)) -> AgentBuilder {
    Agent::builder("a", model.clone()).store(journal.clone())
}

fn built(builder: AgentBuilder) -> Agent {
    builder.build().expect("builds")
}

fn down() -> Error {
    Error::new(ErrorKind::Provider, "the provider is down")
}

async fn entries(journal: &impl Journal, session: &str) -> Vec<Arc<Entry>> {
    journal.read(session, 0, usize::MAX).await.expect("reads")
}

// --- persisted data ---

async fn a_second_run_of_a_session_continues_the_first(journal: impl Journal + Clone) {
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("six"), Turn::text("again six")]);
    let agent = built(agent(&model, &journal).tool(double("f")));
    let first = finished(agent.start(on("double three", "s")).await);
    let second = finished(agent.start(on("and again", "s")).await);
    assert_eq!(model.requests()[2].texts(), ["double three", "", "6", "six", "and again"]);
    assert_eq!(roles(&second.history), ["user", "assistant", "tool", "assistant", "user", "assistant"]);
    assert_eq!(second.history.iter().take(4).collect::<Vec<_>>(), first.history.iter().collect::<Vec<_>>());
    assert_eq!((second.steps, second.usage.calls), (1, 1), "counts are the run's own");
}

async fn sessions_do_not_see_each_other_and_a_run_without_one_sees_none(journal: impl Journal + Clone) {
    let model = ScriptedModel::new((0..3).map(|_| Turn::text("hello")));
    let agent = built(agent(&model, &journal));
    finished(agent.start(on("mine", "s")).await);
    finished(agent.start(on("yours", "t")).await);
    finished(agent.run("nobody's").await);
    assert_eq!(
        model.requests().iter().map(|seen| seen.texts().join(" ")).collect::<Vec<_>>(),
        ["mine", "yours", "nobody's"]
    );
    assert_eq!(journal.sessions().await.expect("reads").len(), 3, "a run without a session is a session of its own");
}

async fn storage_is_kept_with_the_session_unless_it_is_given(journal: impl Journal + Clone) {
    let visits =
        |n: usize| ScriptedModel::new((0..n).flat_map(|_| [Turn::call("v", "visit", json!({})), Turn::text("done")]));
    let forgetful = built(agent(&visits(3), &journal).tool(visit()));
    for (session, wanted) in [("s", "visit 1"), ("s", "visit 2"), ("t", "visit 1")] {
        let end = finished(forgetful.start(on("go", session)).await);
        assert_eq!(results(&end.history).last().expect("a result").1, wanted);
    }
    let given = GlobalStorage::default();
    given.set(&VISITS, &10).expect("sets");
    let sharing = built(agent(&visits(1), &journal).tool(visit()).globals(given.clone()));
    finished(sharing.start(on("go", "s")).await);
    assert_eq!(given.get(&VISITS).expect("reads"), Some(11), "what the application gave wins");
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("a"));
    assert_eq!(kept.globals["visits"], 11);
}

// --- exclusive access ---

/// Returns a tool that signals its start and then waits for permission to end.
fn waiting(here: &Arc<Notify>, go: &Arc<Notify>) -> FnTool {
    let (here, go) = (here.clone(), go.clone());
    tool("waiting", move |_| {
        let (here, go) = (here.clone(), go.clone());
        async move {
            here.notify_one();
            go.notified().await;
            Ok(ToolOutput::text("gone"))
        }
    })
}

async fn a_session_is_busy_for_the_same_agent_and_free_when_the_run_is_over(journal: impl Journal + Clone) {
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let model = ScriptedModel::new([Turn::call("1", "waiting", json!({})), Turn::text("done"), Turn::text("next")]);
    let agent = built(agent(&model, &journal).tool(waiting(&here, &go)));
    let first = tokio::spawn(agent.start(on("go", "s")));
    here.notified().await;
    let e = agent.start(on("me too", "s")).await.expect_err("busy");
    assert_eq!(e.kind(), ErrorKind::Busy);
    go.notify_one();
    finished(first.await.expect("no panic"));
    let next = finished(agent.start(on("now", "s")).await);
    assert_eq!(next.answer, "next");
    assert_eq!(model.requests()[2].texts().last().expect("a text"), "now");
    assert!(!model.requests()[2].texts().contains(&"me too".to_owned()), "what was refused left nothing behind");
}

async fn agents_with_different_ids_share_a_session_at_once_and_keep_their_own_histories(journal: impl Journal + Clone) {
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let model = ScriptedModel::new([Turn::call("1", "waiting", json!({})), Turn::text("done")]);
    let first = tokio::spawn(built(agent(&model, &journal).tool(waiting(&here, &go))).start(on("go", "s")));
    here.notified().await;
    let other = ScriptedModel::new([Turn::text("hello")]);
    let mut request = on("hi", "s");
    request.agent_id = Some("b".into());
    let end = finished(built(agent(&other, &journal)).start(request).await);
    assert_eq!((&*end.ids.agent_id, roles(&end.history)), ("b", vec!["user", "assistant"]));
    go.notify_one();
    finished(first.await.expect("no panic"));
    for (id, messages) in [("a", 4), ("b", 2)] {
        assert_eq!(journal.index("s").await.expect("folds").look(|index| index.view(id)).history.len(), messages);
    }
}

async fn a_context_that_somebody_kept_does_not_hold_the_session(journal: impl Journal + Clone) {
    let kept = Arc::new(Mutex::new(None));
    let keeper = kept.clone();
    let keeps = hooks::before_agent(move |cx| {
        *keeper.lock().expect("free") = Some(cx.clone());
        Ok(())
    });
    let model = ScriptedModel::new([Turn::text("one"), Turn::text("two")]);
    let agent = built(agent(&model, &journal).middleware(keeps));
    finished(agent.start(on("first", "s")).await);
    let cx = kept.lock().expect("free").clone().expect("kept");
    assert_eq!(cx.decide("late", async { Ok(json!(1)) }).await.expect_err("refused").kind(), ErrorKind::Store);
    finished(agent.start(on("second", "s")).await);
}

// --- incomplete runs ---

async fn a_cancelled_run_leaves_a_history_that_the_next_run_continues(journal: impl Journal + Clone) {
    let log = Log::default();
    let model = ScriptedModel::new([
        Turn::calls([("1", "f", json!({"x": 1})), ("2", "hang", json!({}))]),
        Turn::text("never mind"),
    ]);
    let agent = built(agent(&model, &journal).tool(double("f")).tool(hangs("hang", &log)));
    let run = agent.start(on("go", "s"));
    let handle = run.handle();
    let cancel = async {
        while log.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        handle.cancel();
    };
    assert_eq!(stopped(tokio::join!(run, cancel).0).0, "cancelled");
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("a"));
    assert_eq!(kept.last_run.expect("ran").1, Some(RunStatus::Cancelled));
    finished(agent.start(on("leave it", "s")).await);
    let seen = &model.requests()[1];
    assert_eq!(seen.roles(), ["user", "assistant", "tool", "tool", "user"]);
    let [(_, first), (_, second)] = &seen.results()[..] else { panic!("{:?}", seen.results()) };
    let unknown =
        "An earlier attempt at this call was cut off. It is not known whether it happened, and it was not repeated.";
    assert_eq!((first.as_str(), second.as_str()), ("2", unknown));
}

async fn a_failed_run_leaves_a_history_that_the_next_run_continues(journal: impl Journal + Clone) {
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 1})), Turn::error(down), Turn::text("better")]);
    let agent = built(agent(&model, &journal).tool(double("f")));
    assert_eq!(agent.start(on("go", "s")).await.expect_err("fails").kind(), ErrorKind::Provider);
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("a"));
    assert_eq!(kept.last_run.expect("ran").1, Some(RunStatus::Failed));
    finished(agent.start(on("try again", "s")).await);
    assert_eq!(model.requests()[2].texts(), ["go", "", "2", "try again"]);
}

fn asking() -> FnTool {
    tool("asking", |req: ToolRequest| async move { req.ask::<String>("input", json!(null)).map(ToolOutput::text) })
}

async fn a_question_that_is_open_refuses_new_messages_unless_they_supersede_it(journal: impl Journal + Clone) {
    let model = ScriptedModel::new([Turn::call("1", "asking", json!({})), Turn::text("fine")]);
    let agent = built(agent(&model, &journal).tool(asking()));
    assert_eq!(stopped(agent.start(on("go", "s")).await).0, "interrupted");
    let refused = agent.start(on("forget it", "s")).await.expect_err("the question is open");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.message().contains("'1/input' (input)"), "{refused}");
    assert_eq!(refused.checkpoint().expect("where it stands").questions[0].id, "1/input");
    assert_eq!(model.requests().len(), 1, "nobody was asked");
    finished(agent.start(on("forget it", "s").when_waiting(WhenWaiting::Supersede)).await);
    let seen = &model.requests()[1];
    assert_eq!(seen.roles(), ["user", "assistant", "tool", "user"], "the open call is answered");
}

async fn a_question_that_was_undone_refuses_nobody(journal: impl Journal + Clone) {
    let model = ScriptedModel::new([Turn::call("1", "asking", json!({})), Turn::text("fine")]);
    let agent = built(agent(&model, &journal).tool(asking()));
    let (_, waits) = stopped(agent.start(on("go", "s")).await);
    agent.sessions().expect("has a store").named("s", "a").undo(&waits.ids.run_id).await.expect("can be undone");
    finished(agent.start(on("something else", "s")).await);
    assert_eq!(model.requests()[1].texts(), ["something else"]);
}

async fn a_run_that_was_gone_on_with_is_one_run_in_the_session(journal: impl Journal + Clone) {
    let turns = [Turn::call("1", "asking", json!({})), Turn::text("thanks"), Turn::text("bye")];
    let model = ScriptedModel::new(turns.map(|turn| turn.usage(Usage::new(7, 0))));
    let agent = built(agent(&model, &journal).tool(asking()));
    let (_, checkpoint) = stopped(agent.start(on("go", "s")).await);
    let end = finished(agent.start(RunRequest::resume(checkpoint, [("1/input".to_owned(), json!("Ada"))])).await);
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("a"));
    assert_eq!(kept.history, end.history, "what was kept is what the run saw");
    assert_eq!((kept.usage.calls, kept.usage.input), (2, 14), "what was used before the pause counts once");
    assert_eq!(kept.last_run, Some((end.ids.run_id.clone(), Some(RunStatus::Finished(ExitReason::Text)))));
    finished(agent.start(on("and bye", "s")).await);
    assert_eq!(model.requests()[2].texts(), ["go", "", "Ada", "thanks", "and bye"]);
}

// --- journal entries ---

fn kind(entry: &Entry) -> String {
    let json: serde_json::Value = serde_json::from_str(&entry.body.to_json().expect("JSON")).expect("JSON");
    json.as_object().and_then(|body| body.keys().next().cloned()).expect("a kind")
}

async fn what_happens_is_written_down_in_order(journal: impl Journal + Clone) {
    let model = ScriptedModel::new([Turn::call("v", "visit", json!({})), Turn::text("done")]);
    let end = finished(built(agent(&model, &journal).tool(visit())).start(on("go", "s")).await);
    let entries = entries(&journal, "s").await;
    assert_eq!(
        entries.iter().map(|entry| kind(entry)).collect::<Vec<_>>(),
        [
            "run_started",
            "message_appended",
            "model_finished",
            "model_accepted",
            "tool_started",
            "tool_finished",
            "state_changed",
            "tool_answered",
            "turn_ended",
            "model_finished",
            "model_accepted",
            "run_ended",
        ]
    );
    assert!(entries.iter().map(|entry| entry.seq).eq(1..=12), "without a gap");
    assert!(entries.iter().all(|entry| entry.run == end.ids.run_id && entry.version == Entry::VERSION));
    assert!(entries.is_sorted_by_key(|entry| entry.time));
    let accepted = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::ModelAccepted { message, .. } => Some(message.is_none()),
        EntryBody::ToolAnswered { output, .. } => Some(output.is_none()),
        _ => None,
    });
    assert_eq!(accepted.collect::<Vec<_>>(), [true; 3], "what no hook changed is not written twice");
}

async fn what_is_undone_is_gone_for_the_next_run(journal: impl Journal + Clone) {
    let model = ScriptedModel::new(["one", "two", "three", "four"].map(Turn::text));
    let agent = built(agent(&model, &journal));
    finished(agent.start(on("first", "s")).await);
    let second = finished(agent.start(on("second", "s")).await).ids.run_id;
    finished(agent.start(on("third", "s")).await);
    let writer = journal.open("s", "a").await.expect("free");
    let undone = EntryBody::Undone { before_run: second.clone() };
    writer.append(vec![Entry::new(second, 0, undone)]).await.expect("appends");
    drop(writer);
    finished(agent.start(on("instead", "s")).await);
    assert_eq!(model.requests()[3].texts(), ["first", "one", "instead"]);
    assert!(
        entries(&journal, "s").await.iter().any(|entry| match &entry.body {
            EntryBody::MessageAppended { message: Message::User(m) } => m.text() == "second",
            _ => false,
        }),
        "nothing is deleted"
    );
}
