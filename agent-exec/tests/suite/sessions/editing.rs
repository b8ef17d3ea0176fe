//! Reading and editing a session outside of runs.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, ErrorKind, ExitReason, History, Journal, MemoryJournal, Message, RunRequest, ToolMessage,
    WhenWaiting,
    history::{Repair, ReplaceReason},
    journal::{EntryBody, RunStatus},
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Session, Sessions};
use agent_store::SqliteJournal;
use proptest::{collection::vec, prelude::*};
use serde_json::json;
use tokio::sync::Notify;

use super::{agent, asking, built, entries, on, waiting};
use crate::common::{double, finished, roles, stopped};

fn session(journal: &(impl Journal + Clone)) -> Session {
    Sessions::new(journal.clone()).named("s", "a")
}

async fn texts(session: &Session) -> Vec<String> {
    session.history().await.expect("folds").iter().map(Message::text).collect()
}

fn of(texts: &[&str]) -> History {
    History::from_messages(texts.iter().map(|text| Message::user(*text))).expect("no calls")
}

/// Returns a message with two calls and their results.
fn turn(name: &str) -> Vec<Message> {
    let call = |n: &str| Block::tool_call(format!("{name}-{n}"), "f", "{}");
    let result = |n: &str, is_error| {
        Message::Tool(ToolMessage::text(format!("{name}-{n}"), "f", format!("{name} {n}"), is_error))
    };
    let asks = AssistantMessage::new(vec![Block::text(name), call("1"), call("2")]);
    vec![Message::Assistant(asks), result("1", false), result("2", true)]
}

// --- effects of edits ---

#[tokio::test]
async fn what_is_appended_replaced_and_undone_is_what_the_next_run_sees() {
    let journal = MemoryJournal::default();
    let session = session(&journal);
    session.append(Message::user("I am Ada.")).await.expect("appends");
    session.extend(turn("look")).await.expect("appends");
    let cut = session.replace(of(&["summary"]), ReplaceReason::CompactManual).await.expect("replaces");
    assert_eq!(texts(&session).await, ["summary"]);
    session.undo(&cut).await.expect("undoes");
    let model = ScriptedModel::new([Turn::text("Ada.")]);
    finished(built(agent(&model, &journal)).start(on("Who am I?", "s")).await);
    assert_eq!(model.requests()[0].texts(), ["I am Ada.", "look", "look 1", "look 2", "Who am I?"]);
    assert_eq!(roles(&session.history().await.expect("folds"))[..4], ["user", "assistant", "tool", "tool"]);
}

#[tokio::test]
async fn what_is_sent_again_under_its_key_is_there_once_on_every_store() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
    for journal in [Arc::new(MemoryJournal::default()) as Arc<dyn Journal>, Arc::new(file)] {
        let session = session(&journal);
        let key = session.append_once("key-1", Message::user("once")).await.expect("appends");
        let before = entries(&journal, "s").await.len();
        assert_eq!(session.append_once("key-1", Message::user("twice")).await.expect("is there"), key);
        assert_eq!((texts(&session).await, entries(&journal, "s").await.len()), (vec!["once".to_owned()], before));
        session.append_once("key-2", Message::user("another")).await.expect("appends");
        assert_eq!(texts(&session).await, ["once", "another"]);
        assert_eq!(session.append_once("key-1", Message::user("late")).await.expect("is there"), key);
        assert_eq!(texts(&session).await, ["once", "another"], "it need not be the newest");

        let model = ScriptedModel::new([Turn::text("hello"), Turn::text("and again")]);
        let agent = built(agent(&model, &journal));
        let request = || on("hi", "s").run_id("request-7");
        assert_eq!(&*finished(agent.start(request()).await).ids.run_id, "request-7");
        let e = agent.start(request()).await.expect_err("it ran");
        assert!(e.kind() == ErrorKind::Stale && e.message().contains("a run 'request-7' already"), "{e}");
        assert_eq!(model.requests().len(), 1, "nobody is asked again");
        assert_eq!(texts(&session).await, ["once", "another", "hi", "hello"]);
    }
}

#[tokio::test]
async fn every_replacement_says_why() {
    let journal = MemoryJournal::default();
    let session = session(&journal);
    session.append(Message::user("1")).await.expect("appends");
    session.replace(of(&["a"]), ReplaceReason::CompactAuto).await.expect("replaces");
    let focus = "the bugs".to_owned();
    session.replace(of(&["b"]), ReplaceReason::CompactFocused { focus }).await.expect("replaces");
    session.replace(of(&["c"]), "pruned").await.expect("replaces");
    session.clear().await.expect("clears");
    let entries = entries(&journal, "s").await;
    let reasons = entries.iter().filter_map(|e| match &e.body {
        EntryBody::HistoryReplaced { reason, before, .. } => Some((reason.to_string(), *before)),
        _ => None,
    });
    let wanted = ["compact_auto", "compact_focused", "pruned", "user_clear"].map(|reason| (reason.to_owned(), 1));
    assert_eq!(reasons.collect::<Vec<_>>(), wanted);
    assert!(texts(&session).await.is_empty());
}

#[tokio::test]
async fn what_is_unpaired_is_mended_or_refused_and_nothing_is_half_written() {
    let journal = MemoryJournal::default();
    let session = session(&journal);
    let [asks, result, _] = &turn("t")[..] else { unreachable!("three messages") };
    for message in [asks.clone(), result.clone(), Message::Assistant(AssistantMessage::new(vec![]))] {
        assert_eq!(session.append(message).await.expect_err("refused").kind(), ErrorKind::History);
    }
    assert!(entries(&journal, "s").await.is_empty());
    let (_, repairs) = session.extend([asks.clone(), result.clone()]).await.expect("mended");
    assert_eq!(repairs, [Repair::MissingResult { call_id: "t-2".into() }]);
    let history = session.history().await.expect("folds");
    assert_eq!(history.get(2).expect("three").text(), "No result was recorded: the call was interrupted.");
}

#[tokio::test]
async fn undo_of_an_unknown_run_is_an_error_and_writes_nothing() {
    let journal = MemoryJournal::default();
    let (session, other) = (session(&journal), Sessions::new(journal.clone()).named("s", "b"));
    let run = session.append(Message::user("mine")).await.expect("appends");
    let before = entries(&journal, "s").await.len();
    let e = session.undo("no such run").await.expect_err("unknown");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(e.message().contains("no such run"), "{e}");
    assert_eq!(other.undo(&run).await.expect_err("another agent's").kind(), ErrorKind::Config);
    assert_eq!(entries(&journal, "s").await.len(), before);
    assert_eq!(texts(&session).await, ["mine"]);
}

#[tokio::test]
async fn editing_while_a_run_is_under_way_is_refused_and_allowed_after_it() {
    let journal = MemoryJournal::default();
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let model = ScriptedModel::new([Turn::call("1", "waiting", json!({})), Turn::text("done")]);
    let run = tokio::spawn(built(agent(&model, &journal).tool(waiting(&here, &go))).start(on("go", "s")));
    here.notified().await;
    let session = session(&journal);
    let id = session.runs().await.expect("reads")[0].run_id.clone();
    let edits = [
        session.append(Message::user("x")).await.err(),
        session.extend(turn("x")).await.err(),
        session.clear().await.err(),
        session.undo(&id).await.err(),
    ];
    for e in edits {
        let e = e.expect("refused");
        assert_eq!(e.kind(), ErrorKind::Busy);
        assert!(e.message().contains("when the run is over"), "{e}");
    }
    go.notify_one();
    let end = finished(run.await.expect("no panic"));
    assert_eq!(session.history().await.expect("folds"), end.history);
    session.undo(&id).await.expect("undoes");
    assert!(texts(&session).await.is_empty());
}

// --- runs ---

#[tokio::test]
async fn runs_are_listed_with_what_became_of_them() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new([
        Turn::call("1", "f", json!({"x": 1})),
        Turn::text("two"),
        Turn::call("1", "asking", json!({})),
        Turn::error(|| agent_core::Error::new(ErrorKind::Provider, "the provider is down")),
    ]);
    let agent = built(agent(&model, &journal).tool(double("f")).tool(asking()));
    let first = finished(agent.start(on("double one", "s")).await);
    stopped(agent.start(on("ask me", "s")).await);
    agent.start(on("fail", "s").when_waiting(WhenWaiting::Supersede)).await.expect_err("fails");
    let session = agent.sessions().expect("a store").named("s", "a");
    session.append(Message::user("by hand")).await.expect("appends");
    let runs = session.runs().await.expect("reads");
    let said: Vec<_> = runs.iter().map(|run| run.first_message.as_deref().expect("a message")).collect();
    assert_eq!(said, ["double one", "ask me", "fail", "by hand"]);
    assert_eq!(runs.iter().map(|run| run.is_edit).collect::<Vec<_>>(), [false, false, false, true]);
    let status: Vec<_> = runs[..3].iter().map(|run| run.status.clone().expect("ended")).collect();
    assert_eq!(status, [RunStatus::Finished(ExitReason::Text), RunStatus::Interrupted, RunStatus::Failed]);
    assert_eq!((runs[0].usage, runs[0].steps, &runs[0].run_id), (first.usage, 2, &first.ids.run_id));
    assert!(runs[2].error.as_deref().expect("a reason").contains("the provider is down"));
    session.undo(&runs[1].run_id).await.expect("undoes");
    let undone: Vec<_> = session.runs().await.expect("reads").iter().map(|run| run.undone).collect();
    assert_eq!(undone, [false, true, true, true]);
    assert_eq!(session.history().await.expect("folds"), first.history);
}

#[tokio::test]
async fn a_waiting_run_is_found_and_gone_on_with_by_another_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
    let asks = ScriptedModel::new([Turn::call("1", "asking", json!({}))]);
    stopped(built(agent(&asks, &open()).tool(asking())).start(on("go", "s")).await);

    let model = ScriptedModel::new([Turn::text("thanks")]);
    let agent = built(agent(&model, &open()).tool(asking()));
    let session = agent.sessions().expect("a store").named("s", "a");
    let open = session.unfinished().await.expect("reads").expect("one is open");
    assert_eq!((open.questions[0].id.as_str(), open.questions[0].kind.as_str()), ("1/input", "input"));
    let answer = (open.questions[0].id.clone(), json!("Ada"));
    assert_eq!(finished(agent.start(RunRequest::recover("s", [answer])).await).answer, "thanks");
    assert!(session.unfinished().await.expect("reads").is_none());
}

#[tokio::test]
async fn a_run_that_waits_is_superseded_by_an_edit_and_by_undoing_it_or_what_came_before() {
    for edit in ["append", "undo it", "undo the one before"] {
        let journal = MemoryJournal::default();
        let model = ScriptedModel::new([Turn::text("hello"), Turn::call("1", "asking", json!({}))]);
        let agent = built(agent(&model, &journal).tool(asking()));
        finished(agent.start(on("hi", "s")).await);
        stopped(agent.start(on("go", "s")).await);
        let session = session(&journal);
        assert!(session.unfinished().await.expect("reads").is_some());
        let runs = session.runs().await.expect("reads");
        match edit {
            "append" => drop(session.append(Message::user("never mind")).await.expect("appends")),
            "undo it" => session.undo(&runs[1].run_id).await.expect("undoes"),
            _ => session.undo(&runs[0].run_id).await.expect("undoes"),
        }
        assert!(session.unfinished().await.expect("reads").is_none(), "{edit}");
        let e = agent.start(RunRequest::recover("s", [])).await.expect_err("nothing is open");
        assert_eq!(e.kind(), ErrorKind::Config, "{edit}");
    }
}

// --- any sequence ---

#[derive(Clone, Debug)]
enum Doing {
    Runs,
    Appends,
    ExtendsByTurn,
    Replaces(usize),
    Clears,
    /// Reverts to before the edit or run that began this many ago.
    Undoes(usize),
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        3 => Just(Doing::Runs),
        3 => Just(Doing::Appends),
        3 => Just(Doing::ExtendsByTurn),
        1 => (0_usize..3).prop_map(Doing::Replaces),
        1 => Just(Doing::Clears),
        3 => (0_usize..4).prop_map(Doing::Undoes),
    ]
}

/// A naive model of the effects of edits and runs.
#[derive(Default)]
struct Naive {
    runs: Vec<Arc<str>>,
    effects: Vec<(usize, bool, Vec<Message>)>,
}

impl Naive {
    fn did(&mut self, run: Arc<str>, replaces: bool, messages: Vec<Message>) {
        self.runs.push(run);
        self.effects.push((self.runs.len() - 1, replaces, messages));
    }

    fn history(&self) -> Vec<Message> {
        let mut history = Vec::new();
        for (_, replaces, messages) in &self.effects {
            if *replaces {
                history.clear();
            }
            history.extend(messages.iter().cloned());
        }
        history
    }
}

async fn act(naive: &mut Naive, doing: &Doing, name: &str, journal: &(impl Journal + Clone)) {
    let session = session(journal);
    match doing {
        Doing::Runs => {
            let model = ScriptedModel::new([Turn::text(format!("{name} answered"))]);
            let end = finished(built(agent(&model, journal)).start(on(name, "s")).await);
            let said = vec![Message::user(name), Message::assistant(format!("{name} answered"))];
            naive.did(end.ids.run_id, false, said);
        }
        Doing::Appends => {
            let run = session.append(Message::user(name)).await.expect("appends");
            naive.did(run, false, vec![Message::user(name)]);
        }
        Doing::ExtendsByTurn => {
            let (run, repairs) = session.extend(turn(name)).await.expect("appends");
            assert!(repairs.is_empty());
            naive.did(run, false, turn(name));
        }
        Doing::Replaces(count) => {
            let messages: Vec<_> = (0..*count).map(|n| Message::user(format!("{name} {n}"))).collect();
            let history = History::from_messages(messages.clone()).expect("no calls");
            naive.did(session.replace(history, "tidied").await.expect("replaces"), true, messages);
        }
        Doing::Clears => naive.did(session.clear().await.expect("clears"), true, vec![]),
        Doing::Undoes(ago) => {
            let Some(at) = naive.runs.len().checked_sub(ago + 1) else { return };
            session.undo(&naive.runs[at]).await.expect("undoes");
            naive.effects.retain(|(run, ..)| *run < at);
        }
    }
}

async fn holds(doings: &[Doing], journal: &(impl Journal + Clone)) -> Vec<Message> {
    let mut naive = Naive::default();
    for (n, doing) in doings.iter().enumerate() {
        act(&mut naive, doing, &format!("m{n}"), journal).await;
        let kept: Vec<_> = session(journal).history().await.expect("folds").iter().cloned().collect();
        assert_eq!(kept, naive.history(), "after {n}: {doing:?}");
    }
    assert_eq!(session(journal).runs().await.expect("reads").len(), naive.runs.len());
    naive.history()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_sequence_gives_the_same_history_on_every_journal_and_after_reopening(doings in vec(doing(), 0..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let in_memory = holds(&doings, &MemoryJournal::default()).await;
            let dir = tempfile::tempdir().expect("a folder");
            let open = || SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
            assert_eq!(holds(&doings, &open()).await, in_memory);
            let reopened = session(&open()).history().await.expect("folds");
            assert_eq!(reopened.iter().cloned().collect::<Vec<_>>(), in_memory);
        });
    }
}
