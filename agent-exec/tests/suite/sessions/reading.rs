//! Number of entries that a run reads of its session, however long the session is, also in a new
//! process.

use std::sync::{Arc, Mutex};

use agent_core::{
    Ask, Finished, Journal, MemoryJournal, Message, RunRequest, ToolOutput, ToolRequest, WhenWaiting,
    journal::{Entry, EntryBody, IndexCache, JournalWriter, SharedIndex, fork_at},
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use serde_json::json;

use super::{built, entries, on};
use crate::common::{FnTool, double, finished, stopped, tool};

/// A store that counts the entries that it returns, as one process sees it.
#[derive(Default)]
struct Counting {
    journal: MemoryJournal,
    indexes: IndexCache,
    read: Arc<Mutex<usize>>,
}

impl Counting {
    /// Returns the store as a new process sees it.
    fn cold(&self) -> Self {
        Self { journal: self.journal.clone(), indexes: IndexCache::default(), read: self.read.clone() }
    }

    /// Returns the number of entries read since the last call.
    fn taken(&self) -> usize {
        std::mem::take(&mut *self.read.lock().expect("free"))
    }
}

#[agent_core::async_trait]
impl Journal for Counting {
    async fn open(&self, session: &str, agent: &str) -> agent_core::Result<Arc<dyn JournalWriter>> {
        self.journal.open(session, agent).await
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> agent_core::Result<Vec<Arc<Entry>>> {
        let page = self.journal.read(session, after, limit).await?;
        *self.read.lock().expect("free") += page.len();
        Ok(page)
    }

    async fn index(&self, session: &str) -> agent_core::Result<SharedIndex> {
        self.indexes.index(self, session).await
    }

    async fn whole_index(&self, session: &str) -> agent_core::Result<SharedIndex> {
        self.indexes.whole_index(self, session).await
    }

    async fn has_run(&self, session: &str, run: &str) -> agent_core::Result<bool> {
        self.journal.has_run(session, run).await
    }

    async fn anchor(&self, session: &str) -> agent_core::Result<Option<Arc<Entry>>> {
        let entries = entries(&self.journal, session).await;
        Ok(entries.into_iter().rfind(|entry| matches!(entry.body, EntryBody::Anchored { .. })))
    }

    async fn sessions(&self) -> agent_core::Result<Vec<String>> {
        self.journal.sessions().await
    }

    async fn delete(&self, session: &str) -> agent_core::Result<bool> {
        self.journal.delete(session).await
    }
}

/// Returns a tool that asks before it does anything.
fn careful() -> FnTool {
    tool("careful", |request: ToolRequest| {
        let answer = request.ask_with(Ask::new("confirm", json!("really?")));
        async move { answer.map(|answer| ToolOutput::text(answer.value.to_string())) }
    })
}

/// Builds the agent `name` in a new process.
fn cold(store: &Counting, name: &'static str, turns: impl IntoIterator<Item = Turn>) -> Agent {
    built(Agent::builder(name, ScriptedModel::new(turns)).tool(careful()).store(store.cold()))
}

/// Runs five processes, one after the other, each with 121 turns of the agent "a", at whose end it
/// clears its conversation. Returns how much the first turn of each had to read, and the last
/// process.
async fn five_processes(store: &Counting) -> (Vec<usize>, Agent) {
    let mut costs = Vec::new();
    loop {
        let agent = cold(store, "a", (0..200).map(|_| Turn::text("two")));
        store.taken();
        finished(agent.start(on("again", "s").run_id(format!("first-{}", costs.len()))).await);
        costs.push(store.taken());
        for _ in 0..120 {
            finished(agent.start(on("again", "s")).await);
        }
        agent.sessions().expect("has a store").named("s", "a").clear().await.expect("is free");
        if costs.len() == 5 {
            return (costs, agent);
        }
    }
}

#[tokio::test]
async fn a_process_that_sees_a_session_for_the_first_time_reads_what_follows_its_anchor() {
    let store = Counting::default();
    let (costs, agent) = five_processes(&store).await;
    let all = entries(&store.journal, "s").await.len();
    assert!(costs[4] < 1_300 && all > 2_500, "{costs:?} of {all}");
    let session = |agent: &Agent| agent.sessions().expect("has a store").named("s", "a");
    let runs = session(&agent).runs().await.expect("reads");
    assert_eq!(runs.len(), 5 * 122, "each run and each edit is still there");
    session(&agent).undo(&runs[1].run_id).await.expect("can be undone");
    assert_eq!(session(&agent).history().await.expect("reads").len(), 2);
    assert_eq!(session(&cold(&store, "a", [])).history().await.expect("reads").len(), 2);
}

#[tokio::test]
async fn a_run_that_another_agent_left_open_does_not_make_a_session_longer_to_read() {
    let asks = || [Turn::text("hello"), Turn::call("c1", "careful", json!({}))];
    for what in ["answered", "recovered", "forked", "undone", "superseded"] {
        let store = Counting::default();
        let left = cold(&store, "b", asks());
        finished(left.start(on("hi", "s")).await);
        let (how, waits) = stopped(left.start(on("go", "s")).await);
        assert_eq!(how, "interrupted");
        let (costs, _) = five_processes(&store).await;
        let all = entries(&store.journal, "s").await.len();
        assert!(costs[4] < 1_300 && all > 2_500, "{costs:?} of {all}");

        let agent = cold(&store, "b", [Turn::text("done")]);
        let session = agent.sessions().expect("has a store").named("s", "b");
        store.taken();
        let mut found = session.unfinished().await.expect("reads").expect("waits");
        found.elapsed_ms = waits.elapsed_ms; // one counts until the last entry, the other until now
        assert_eq!(found, waits, "as it was left");
        assert!(store.taken() < 1_300);
        let answer = [waits.questions[0].answer(true)];
        let texts = |end: Finished| end.history.iter().map(Message::text).collect::<Vec<_>>();
        match what {
            "answered" => {
                let end = finished(agent.start(RunRequest::resume_with(waits, answer)).await);
                assert_eq!(texts(end), ["hi", "hello", "go", "", "true", "done"]);
                assert!(store.taken() < 1_300);
            }
            "recovered" => {
                let end = finished(agent.start(RunRequest::recover_with("s", answer)).await);
                assert_eq!(texts(end), ["hi", "hello", "go", "", "true", "done"]);
                assert!(store.taken() < 1_300);
            }
            "forked" => {
                let fork = fork_at(&store.cold(), "s", "b", None, 0, "t").await.expect("can be forked");
                let end = finished(agent.start(RunRequest::resume(fork, [])).await);
                assert_eq!(texts(end), ["hi", "hello", "go", "done"]);
            }
            "undone" => {
                session.undo(&waits.ids.run_id).await.expect("can be undone");
                assert_eq!(session.unfinished().await.expect("reads"), None);
                let cold = cold(&store, "b", [Turn::text("done")]);
                assert_eq!(texts(finished(cold.start(on("so", "s")).await)), ["hi", "hello", "so", "done"]);
            }
            _ => {
                let request = || on("so", "s").when_waiting(WhenWaiting::Supersede);
                let end = texts(finished(agent.start(request()).await));
                assert_eq!([&end[..4], &end[5..]].concat(), ["hi", "hello", "go", "", "so", "done"]);
                assert!(store.taken() < 1_300);
            }
        }
    }
}

#[tokio::test]
async fn a_long_conversation_is_read_from_its_end_and_what_its_anchors_hold_is_written_once() {
    let (store, mut costs) = (Counting::default(), Vec::new());
    for _ in 0..5 {
        let agent = cold(&store, "a", (0..250).map(|_| Turn::text("two")));
        store.taken();
        for n in 0..250 {
            finished(agent.start(on("again", "s")).await);
            if n == 0 {
                costs.push(store.taken());
            }
        }
    }
    let all = entries(&store.journal, "s").await;
    assert!(costs[4] < 1_100 && all.len() > 5_000, "{costs:?} of {}", all.len());
    let bytes = |entry: &Arc<Entry>| entry.body.to_json().expect("JSON").len();
    let (anchors, others): (Vec<_>, Vec<_>) =
        all.iter().partition(|entry| matches!(entry.body, EntryBody::Anchored { .. }));
    let (sizes, written) =
        (anchors.into_iter().map(bytes).collect::<Vec<_>>(), others.into_iter().map(bytes).sum::<usize>());
    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    assert!(sizes.len() > 4 && last < first + first / 10, "as large as what is new: {sizes:?}");
    assert!(2 * sizes.iter().sum::<usize>() < written, "{sizes:?} of {written}");
    let history =
        cold(&store, "a", []).sessions().expect("has a store").named("s", "a").history().await.expect("reads");
    assert_eq!(history.len(), 2 * 5 * 250);
}

#[tokio::test]
async fn a_session_whose_run_is_only_gone_on_with_is_anchored_too() {
    let (store, mut costs) = (Counting::default(), Vec::new());
    let agent = || {
        let asks = (0..100).map(|n| Turn::call(&format!("c{n}"), "careful", json!({})));
        built(Agent::builder("a", ScriptedModel::new(asks)).tool(careful()).max_steps(1_000).store(store.cold()))
    };
    let (_, mut waits) = stopped(agent().start(on("go", "s")).await);
    for recovers in [false, true, false, true, false] {
        let agent = agent();
        store.taken();
        for n in 0..60 {
            let answer = [waits.questions[0].answer(true)];
            let request = match recovers {
                true => RunRequest::recover_with("s", answer),
                false => RunRequest::resume_with(waits, answer),
            };
            (_, waits) = stopped(agent.start(request).await);
            if n == 0 {
                costs.push(store.taken());
            }
        }
    }
    let all = entries(&store.journal, "s").await.len();
    assert!(costs[4] < 1_300 && all > 2_000, "{costs:?} of {all}");
}

#[tokio::test]
async fn a_turn_reads_what_is_new_however_long_its_session_is() {
    let store = Counting::default();
    let turns = (0..200).flat_map(|_| [Turn::call("c1", "double", json!({"x": 1})), Turn::text("two")]);
    let agent = built(Agent::builder("a", ScriptedModel::new(turns)).tool(double("double")).store(store.cold()));
    let mut costs = Vec::new();
    for _ in 0..200 {
        finished(agent.start(RunRequest::user("again").session("long")).await);
        costs.push(store.taken());
    }
    assert_eq!(costs[10], costs[199], "{costs:?}");
    assert!(costs[199] < 20, "{costs:?}");
}

#[tokio::test]
async fn an_answer_reads_what_is_new_however_long_its_session_is() {
    let store = Counting::default();
    let turns = (0..100).flat_map(|_| [Turn::call("c1", "careful", json!({})), Turn::text("done")]);
    let agent = cold(&store, "a", turns);
    let mut costs = Vec::new();
    for _ in 0..100 {
        let (_, waits) = stopped(agent.start(on("go", "long")).await);
        let answer = waits.questions[0].answer(true);
        store.taken();
        finished(agent.start(RunRequest::resume_with(waits, [answer])).await);
        costs.push(store.taken());
    }
    assert_eq!(costs[10], costs[99], "{costs:?}");
    assert!(costs[99] < 20, "{costs:?}");
}
