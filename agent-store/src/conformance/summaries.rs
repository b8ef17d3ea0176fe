//! Summaries of sessions and runs: a projection says what the entries say.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    ExitReason, Journal, Question, Result, RunIds, Usage, async_trait,
    journal::{
        EDITED, Entry, EntryBody, JournalWriter, METADATA, RunQuery, RunStatus, RunSummary, SessionQuery,
        SessionSummary,
    },
    run::checkpoint::RunState,
};
use serde_json::{Value, json};

use super::{append, open};

/// Journal without a projection: it folds the entries.
struct Folding(Arc<dyn Journal>);

#[async_trait]
impl Journal for Folding {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
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

/// One run of an agent, whose entries are written by hand. Time advances with each entry.
struct Script<'a> {
    writer: &'a dyn JournalWriter,
    ids: Arc<RunIds>,
    time: &'a std::sync::atomic::AtomicU64,
}

impl Script<'_> {
    async fn write(&self, bodies: impl IntoIterator<Item = EntryBody>) {
        let entry = |body| {
            let time = self.time.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Entry::new(self.ids.run_id.clone(), time, body)
        };
        append(self.writer, bodies.into_iter().map(entry).collect()).await;
    }

    async fn begin(&self) {
        self.write([EntryBody::RunStarted { ids: self.ids.clone(), fingerprint: "f".into() }]).await;
    }

    async fn end(&self, status: RunStatus) {
        self.write([ended(status)]).await;
    }

    async fn resume(&self) {
        self.write([EntryBody::RunResumed { ids: self.ids.clone(), attempt: "a2".into() }]).await;
    }
}

fn ended(status: RunStatus) -> EntryBody {
    let error = (status == RunStatus::Failed).then(|| "it broke \u{0}".into());
    EntryBody::RunEnded { status, usage: Usage::new(7, 2).with_cost(Some(5)).into(), error, answer: None }
}

fn finished() -> RunStatus {
    RunStatus::Finished(ExitReason::Text)
}

fn question(id: &str, digest: &str) -> EntryBody {
    let mut question = Question::new(id, "approval", json!({"why": "§ \u{0}", "long": "x".repeat(5_000)}));
    question.digest = digest.into();
    EntryBody::Asked { question: question.into() }
}

fn root(session: &str, agent: &str, user: Option<&str>) -> Arc<RunIds> {
    let mut ids = RunIds::root(agent, session);
    ids.user = user.map(Into::into);
    Arc::new(ids)
}

/// Asserts that all queries have the same results as without a projection.
async fn agrees(journal: &Arc<dyn Journal>, when: &str) {
    let folding = Folding(journal.clone());
    let prefixes = ["", "t/", "t/a", "none/"];
    for prefix in prefixes {
        for query in [RunQuery::default(), RunQuery::incomplete(), RunQuery::waiting()] {
            let user = query.clone().user("t/ada");
            let of_agent = query.clone().agents(["a", "nobody"]);
            let of_session = query.clone().session("t/one");
            for query in [query.clone().limit(2), query, user, of_agent, of_session] {
                let query = query.prefix(prefix);
                let (found, expected) = (journal.runs(&query).await, folding.runs(&query).await);
                assert_eq!(found.expect("reads"), expected.expect("folds"), "{when}: {query:?}");
            }
        }
        let query = SessionQuery::default().prefix(prefix);
        let labelled = query.clone().metadata("ticket", "A-17");
        let twice = labelled.clone().metadata("colour", "§ \u{0}");
        let (user, of_agent) = (query.clone().user("t/ada"), query.clone().agents(["b"]));
        for query in [query.clone().limit(2), query, labelled, twice, user, of_agent] {
            let (found, expected) = (journal.recent(&query).await, folding.recent(&query).await);
            assert_eq!(found.expect("reads"), expected.expect("folds"), "{when}: {query:?}");
        }
    }
}

async fn runs(journal: &Arc<dyn Journal>, query: RunQuery) -> Vec<RunSummary> {
    journal.runs(&query).await.expect("reads")
}

async fn recent(journal: &Arc<dyn Journal>, query: SessionQuery) -> Vec<SessionSummary> {
    journal.recent(&query).await.expect("reads")
}

/// A run is summarised while it runs, waits, resumes and ends.
pub async fn a_run_is_summarised_through_its_life(journal: Arc<dyn Journal>) {
    let time = 1_000.into();
    let writer = open(&*journal, "t/one", "a").await;
    let run = Script { writer: &*writer, ids: root("t/one", "a", Some("t/ada")), time: &time };
    run.begin().await;
    agrees(&journal, "begun").await;
    let begun = runs(&journal, RunQuery::incomplete().prefix("t/")).await.remove(0);
    assert_eq!((&begun.status, begun.started, begun.ended, begun.user.as_deref()), (&None, 1_000, None, Some("t/ada")));
    run.write([question("c1/approval", "r.a.0"), question("c2/approval", "r.a.1")]).await;
    assert!(runs(&journal, RunQuery::waiting()).await.is_empty(), "it still runs");
    agrees(&journal, "asked").await;
    run.end(RunStatus::Interrupted).await;
    agrees(&journal, "waiting").await;
    let waiting = runs(&journal, RunQuery::waiting()).await;
    let ids: Vec<_> = waiting[0].questions.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids, ["c1/approval", "c2/approval"]);
    assert_eq!(recent(&journal, SessionQuery::default()).await[0].questions, 2);

    // The next process has another writer.
    let ids = run.ids.clone();
    drop(writer);
    let writer = open(&*journal, "t/one", "a").await;
    let run = Script { writer: &*writer, ids, time: &time };
    run.resume().await;
    run.write([EntryBody::Answered {
        id: "c1/approval".into(),
        answer: json!(true),
        by: None,
        digest: "r.a.0".into(),
    }])
    .await;
    agrees(&journal, "answered").await;
    run.end(RunStatus::Paused).await;
    agrees(&journal, "paused").await;
    assert_eq!(runs(&journal, RunQuery::waiting()).await[0].questions.len(), 1);
    run.resume().await;
    run.write([EntryBody::TurnEnded { step: 1, changed: BTreeMap::new(), exit: None }]).await;
    run.end(RunStatus::Failed).await;
    agrees(&journal, "failed").await;
    let failed = runs(&journal, RunQuery::incomplete()).await.remove(0);
    assert_eq!((failed.error.as_deref(), failed.usage.cost), (Some("it broke \u{0}"), 5));
    run.resume().await;
    run.write([EntryBody::ModelAccepted { step: 3, message: None, exit: None }]).await;
    agrees(&journal, "a step").await;
    run.end(RunStatus::Paused).await;
    run.resume().await;
    run.end(finished()).await;
    agrees(&journal, "finished").await;
    assert_eq!(runs(&journal, RunQuery::default()).await[0].steps, 3);
    assert!(runs(&journal, RunQuery::incomplete()).await.is_empty());
    assert_eq!(recent(&journal, SessionQuery::default()).await[0].usage.input, 7, "a resumed run counts once");
}

/// Later runs, edits, undone runs, imports, sub-agents and repeated beginnings change summaries as
/// they change the fold.
pub async fn summaries_follow_forks_rewinds_and_sub_agents(journal: Arc<dyn Journal>) {
    let time = 1_000.into();
    let writer = open(&*journal, "t/one", "a").await;
    let of = |ids: &Arc<RunIds>| Script { writer: &*writer, ids: ids.clone(), time: &time };
    let first = root("t/one", "a", None);
    of(&first).begin().await;
    of(&first).write([question("c1/approval", "")]).await;
    of(&first).end(RunStatus::Interrupted).await;
    let second = root("t/one", "a", Some("t/ada"));
    of(&second).begin().await;
    agrees(&journal, "superseded").await;
    assert!(runs(&journal, RunQuery::waiting()).await.is_empty(), "a later run superseded it");

    // A sub-agent asks, and its caller asks the same with another id.
    let child = Arc::new(second.child("helper", Some("helper-1".into()), None));
    of(&child).begin().await;
    of(&child).write([question("c9/approval", "r.a.7")]).await;
    of(&second).write([question("c2/k/c9/approval", "r.a.7"), question("c3/approval", "r.a.8")]).await;
    of(&child).end(RunStatus::Interrupted).await;
    of(&second).end(RunStatus::Interrupted).await;
    agrees(&journal, "a sub-agent waits").await;
    of(&second).resume().await;
    of(&child).resume().await;
    let answered = EntryBody::ToolAnswered { call_id: "c9".into(), name: "t".into(), output: None };
    of(&child).write([answered]).await;
    of(&child).end(finished()).await;
    of(&second).end(RunStatus::Interrupted).await;
    agrees(&journal, "the sub-agent's question is over").await;
    let left = runs(&journal, RunQuery::waiting()).await.remove(0).questions;
    assert_eq!(left.iter().map(|question| question.id.as_str()).collect::<Vec<_>>(), ["c3/approval"]);

    // Edits are not runs, and undoing one restores nothing.
    let edit = root("t/one", "a", None);
    of(&edit).begin().await;
    of(&edit).end(RunStatus::Finished(ExitReason::Stopped(EDITED.into()))).await;
    agrees(&journal, "edited").await;
    assert_eq!(runs(&journal, RunQuery::default()).await.len(), 2);
    of(&edit).write([EntryBody::Undone { before_run: second.run_id.clone() }]).await;
    agrees(&journal, "undone").await;

    // A fork of a run that waits, and a run that begins again.
    let fork = root("t/fork", "a", None);
    let forked = open(&*journal, "t/fork", "a").await;
    let mut state = RunState::new((*fork).clone(), "f");
    state.questions = vec![Question::new("c1/approval", "approval", json!({}))];
    let fork = Script { writer: &*forked, ids: fork, time: &time };
    fork.begin().await;
    fork.write([EntryBody::Imported { state: state.into() }]).await;
    fork.end(RunStatus::Interrupted).await;
    agrees(&journal, "forked").await;
    assert_eq!(runs(&journal, RunQuery::waiting()).await.len(), 1);
    fork.begin().await;
    agrees(&journal, "begun again").await;
    fork.end(RunStatus::Cancelled).await;
    agrees(&journal, "cancelled").await;
}

/// Sessions are listed by activity, in pages, and found by what clients set.
pub async fn sessions_are_listed_by_activity_and_found_by_metadata(journal: Arc<dyn Journal>) {
    let time = 1_000.into();
    for (session, agent) in [("t/one", "a"), ("t/two", "b"), ("t/three", "a"), ("other", "a"), ("u/one", "a")] {
        let writer = open(&*journal, session, agent).await;
        let run = Script { writer: &*writer, ids: root(session, agent, None), time: &time };
        run.begin().await;
        run.end(finished()).await;
    }
    agrees(&journal, "five sessions").await;
    let writer = open(&*journal, "t/one", "notes").await;
    let notes = Script { writer: &*writer, ids: root("t/one", "notes", None), time: &time };
    let labelled = |value: Option<Value>| EntryBody::StateChanged {
        state: BTreeMap::new(),
        globals: BTreeMap::from([(METADATA.to_owned(), value), ("other".to_owned(), None)]),
    };
    notes.write([labelled(Some(json!({"ticket": "A-17", "colour": "§ \u{0}", "not a text": 7})))]).await;
    agrees(&journal, "labelled").await;
    let names = async |query: SessionQuery| {
        recent(&journal, query).await.into_iter().map(|one| one.session).collect::<Vec<_>>()
    };
    let all = SessionQuery::default().prefix("t/");
    assert_eq!(names(all.clone()).await, ["t/one", "t/three", "t/two"], "the change of metadata was the last activity");
    assert_eq!(names(all.clone().metadata("ticket", "A-17")).await, ["t/one"]);
    notes.write([labelled(Some(json!({"ticket": "B"})))]).await;
    agrees(&journal, "labelled again").await;
    assert!(names(all.clone().metadata("ticket", "A-17")).await.is_empty());
    notes.write([labelled(None), EntryBody::Titled { title: "A § title \u{0}".into() }]).await;
    agrees(&journal, "no metadata").await;
    assert_eq!(recent(&journal, all.clone()).await[0].info.title.as_deref(), Some("A § title \u{0}"));

    let (mut pages, mut query) = (Vec::new(), SessionQuery::default().limit(2));
    loop {
        let page = recent(&journal, query.clone()).await;
        let Some(last) = page.last() else { break };
        query = query.before(last.info.active, &last.session);
        pages.extend(page.into_iter().map(|one| one.session));
    }
    assert_eq!(pages, ["t/one", "u/one", "other", "t/three", "t/two"]);
    let (mut starts, mut query) = (Vec::new(), RunQuery::default().limit(2));
    loop {
        let page = runs(&journal, query.clone()).await;
        let Some(last) = page.last() else { break };
        query = query.before(last);
        starts.extend(page.iter().map(|run| run.started));
    }
    assert_eq!((starts.len(), starts.is_sorted_by(|one, two| one > two)), (5, true), "{starts:?}");
    drop(writer);
    assert!(journal.delete("t/one").await.expect("deletes"));
    agrees(&journal, "deleted").await;
    assert_eq!(names(all).await, ["t/three", "t/two"]);
}

/// Concurrent writers of one session and of several keep the summaries consistent.
pub async fn summaries_are_consistent_under_concurrent_writers(journal: Arc<dyn Journal>) {
    let time = 1_000.into();
    let writing = (0..12).map(|n| {
        let (journal, time) = (&journal, &time);
        async move {
            let (session, agent) = (format!("t/{}", n % 3), format!("agent-{n}"));
            let writer = open(&**journal, &session, &agent).await;
            for round in 0..6 {
                let run = Script { writer: &*writer, ids: root(&session, &agent, None), time };
                run.begin().await;
                run.write([question("c1/approval", "")]).await;
                run.end(if round % 2 == 0 { RunStatus::Interrupted } else { finished() }).await;
            }
            let run = Script { writer: &*writer, ids: root(&session, &agent, None), time };
            run.begin().await;
            run.write([question("c1/approval", ""), ended(RunStatus::Interrupted)]).await;
        }
    });
    futures::future::join_all(writing).await;
    agrees(&journal, "written at once").await;
    assert_eq!(runs(&journal, RunQuery::waiting()).await.len(), 12);
    assert_eq!(runs(&journal, RunQuery::default()).await.len(), 12 * 7);
}
