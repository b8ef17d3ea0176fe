//! Sequence numbers and order.

use std::sync::{Arc, Mutex};

use agent_core::{
    ExitReason, Journal, Message, RunIds, Usage,
    journal::{Entry, EntryBody, Liveness, RunRecord, RunStatus, SessionIndex, SessionInfo, SessionView, liveness_of},
    run::checkpoint::RunState,
};
use futures::future::join_all;

use super::{
    append, every_kind, open, read_all, read_by,
    sample::{heard, text},
};

/// Appends are numbered from 1, whatever the sizes of the batches.
pub async fn sequence_numbers_begin_at_1_and_have_no_gaps(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    let mut next = 1;
    for size in [1, 3, 1, 70, 2] {
        let batch = (0..size).map(|n| heard("r", format!("{}", next + n))).collect();
        assert_eq!(append(&*writer, batch).await, next, "append returns the first number of the batch");
        next += size;
    }
    let entries = read_all(&*journal, "s").await;
    assert!(entries.iter().map(|e| e.seq).eq(1..next));
    assert!(entries.iter().all(|e| text(e) == e.seq.to_string()), "each entry has its acknowledged position");
}

/// Under many concurrent writers, each batch is stored once, contiguously, at the acknowledged
/// position.
pub async fn batches_of_many_writers_are_kept_whole(journal: Arc<dyn Journal>) {
    const WRITERS: u64 = 16;
    const BATCHES: u64 = 12;
    let size = |batch: u64| 1 + batch % 5;
    let tasks = (0..WRITERS).map(|w| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let writer = open(&*journal, "s", &format!("agent-{w}")).await;
            let mut firsts = Vec::new();
            for b in 0..BATCHES {
                let batch = (0..size(b)).map(|n| heard("r", format!("{w}.{b}.{n}"))).collect();
                firsts.push(append(&*writer, batch).await);
            }
            firsts
        })
    });
    let firsts = join_all(tasks).await;
    let texts: Vec<_> = read_all(&*journal, "s").await.iter().map(|e| text(e)).collect();
    assert_eq!(texts.len() as u64, WRITERS * (0..BATCHES).map(size).sum::<u64>());
    for (w, firsts) in (0..).zip(firsts) {
        for (b, first) in (0..).zip(firsts.expect("the task ends")) {
            let at = usize::try_from(first).expect("small") - 1;
            let batch = (0..size(b)).map(|n| format!("{w}.{b}.{n}"));
            assert!(batch.eq(texts[at..].iter().take(usize::try_from(size(b)).expect("small")).cloned()));
        }
    }
}

/// The session metadata equals what reading the session yields, whatever the batches.
pub async fn what_is_known_of_a_session_is_what_its_entries_say(journal: Arc<dyn Journal>) {
    assert_eq!(journal.info("s").await.expect("reads"), None);
    let titled = |title: &str| EntryBody::Titled { title: title.to_owned() };
    let began = |agent: &str, below: bool| {
        let top = RunIds::root(agent, "s");
        let ids = Arc::new(if below { top.child("below", None, None) } else { top });
        EntryBody::RunStarted { ids, fingerprint: String::new() }
    };
    let said = || EntryBody::MessageAppended { message: Message::user("x") };
    let mut known = SessionInfo::default();
    let batches = [
        vec![(5, said())],
        vec![(9, began("b", false)), (3, began("b", true)), (4, began("a\0", false)), (8, began("b", false))],
        vec![(7, titled("first")), (8, titled("any\0 text")), (6, said())],
        vec![(9, began("a\0", false)), (20, said())],
        vec![(10, began("c", false)), (11, titled(""))],
    ];
    let writer = open(&*journal, "s", "a").await;
    append(&*open(&*journal, "other", "a").await, vec![heard("r", "not of this session")]).await;
    for batch in batches {
        let batch: Vec<_> = batch.into_iter().map(|(time, body)| Entry::new("r".into(), time, body)).collect();
        batch.iter().for_each(|entry| known.apply(entry));
        append(&*writer, batch).await;
        assert_eq!(journal.info("s").await.expect("reads").as_ref(), Some(&known));
    }
    drop(writer);
    assert!(journal.delete("s").await.expect("deletes"));
    assert_eq!(journal.info("s").await.expect("reads"), None);
    append(&*open(&*journal, "s", "a").await, vec![heard("r", "anew")]).await;
    let anew = journal.info("s").await.expect("reads").expect("it is there");
    assert_eq!((anew.entries, anew.runs, anew.agents.len(), anew.title), (1, 0, 0, None));
}

/// The index of a session is the fold of all its entries, whatever was cached before, also after a
/// deletion.
pub async fn the_index_of_a_session_is_what_its_entries_mean(journal: Arc<dyn Journal>) {
    for batches in [7, 2, 3] {
        let writer = open(&*journal, "s", "a").await;
        for batch in every_kind("s", "a").chunks(3).take(batches) {
            append(&*writer, batch.to_vec()).await;
            let known = journal.index("s").await.expect("reads").look(meaning);
            assert_eq!(known, meaning(&SessionIndex::read(&*journal, "s").await.expect("reads")));
        }
        drop(writer);
        assert!(journal.delete("s").await.expect("deletes"));
        assert_eq!(journal.index("s").await.expect("reads").look(SessionIndex::seq), 0);
    }
}

/// The use of a run id is known however long ago it was, and only for the requested session.
pub async fn a_run_is_found_by_its_id_before_and_after_an_anchor(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    let run = |id: &str| {
        let mut ids = RunIds::root("a", "s");
        (ids.run_id, ids.root_run_id) = (id.into(), id.into());
        let ids = Arc::new(ids);
        let status = RunStatus::Finished(ExitReason::Text);
        let ended = EntryBody::RunEnded { status, usage: Usage::new(1, 1).into(), error: None, answer: None };
        let started = EntryBody::RunStarted { ids: ids.clone(), fingerprint: String::new() };
        (ids.clone(), [started, ended].map(|body| Entry::new(ids.run_id.clone(), 1, body)).to_vec())
    };
    let ((old, first), (new, second)) = (run("old\0é"), run("new"));
    append(&*writer, first).await;
    let anchor = SessionIndex::read(&*journal, "s").await.expect("reads").anchor(1).expect("can be read back");
    append(&*writer, vec![Entry::new("anchor".into(), 2, EntryBody::Anchored { anchor: Box::new(anchor) })]).await;
    append(&*writer, second).await;
    for (session, id, is_there) in
        [("s", "old\0é", true), ("s", "new", true), ("s", "ne", false), ("t", "new", false), ("s", "", false)]
    {
        assert_eq!(journal.has_run(session, id).await.expect("reads"), is_there, "{id:?} in {session}");
    }
    let nobody = RunIds::root("a", "s");
    for (ids, is_known) in [(&*old, true), (&*new, true), (&nobody, false)] {
        let known = liveness_of(&*journal, ids).await.expect("reads");
        assert_eq!(known != Liveness::Unknown, is_known, "{known:?}");
    }
}

/// A new reader starts at the snapshot; readers of earlier entries, and reads after an undo of
/// earlier entries, start at the beginning.
pub async fn a_session_is_read_from_its_anchor_and_from_its_beginning_when_it_must(journal: Arc<dyn Journal>) {
    let run = |text: &str| {
        let ids = Arc::new(RunIds::root("a", "s"));
        let status = RunStatus::Finished(ExitReason::Text);
        let bodies = [
            EntryBody::RunStarted { ids: ids.clone(), fingerprint: String::new() },
            EntryBody::MessageAppended { message: Message::user(text) },
            EntryBody::RunEnded { status, usage: Usage::new(1, 1).into(), error: None, answer: None },
        ];
        bodies.map(|body| Entry::new(ids.run_id.clone(), 1, body)).to_vec()
    };
    let writer = open(&*journal, "s", "a").await;
    let first = run("first");
    let first_id = first[0].run.clone();
    append(&*writer, first).await;
    for text in ["second", "third"] {
        let all = SessionIndex::read(&*journal, "s").await.expect("reads");
        let anchor = Box::new(all.anchor(1).expect("can be read back"));
        append(&*writer, vec![Entry::new("anchor".into(), 2, EntryBody::Anchored { anchor })]).await;
        append(&*writer, run(text)).await;
    }
    let anchor = journal.anchor("s").await.expect("reads");
    assert!(anchor.is_none_or(|newest| newest.seq == 8), "the newest snapshot");
    for undoes in [false, true] {
        if undoes {
            let undone = EntryBody::Undone { before_run: first_id.clone() };
            append(&*writer, vec![Entry::new(first_id.clone(), 3, undone)]).await;
        }
        let whole = SessionIndex::read(&*journal, "s").await.expect("reads");
        let known = journal.index("s").await.expect("reads");
        assert_eq!(
            known.look(|index| (index.view("a"), index.info().clone())),
            (whole.view("a"), whole.info().clone())
        );
        let runs = journal.whole_index("s").await.expect("reads").look(|index| index.runs("a").to_vec());
        assert_eq!((runs.len(), &*runs), (3, whole.runs("a")));
    }
}

fn meaning(index: &SessionIndex) -> (SessionView, SessionInfo, Vec<RunRecord>, Option<RunState>) {
    (index.view("a"), index.info().clone(), index.runs("a").to_vec(), index.unfinished("a"))
}

/// 64 tasks share a writer: entries are stored in the order of the calls.
pub async fn entries_stand_in_the_order_of_the_calls(journal: Arc<dyn Journal>) {
    const TASKS: usize = 64;
    const EACH: usize = 8;
    let writer = open(&*journal, "s", "a").await;
    let calls = Arc::new(Mutex::new(0));
    let tasks = (0..TASKS).map(|_| {
        let (writer, calls) = (writer.clone(), calls.clone());
        tokio::spawn(async move {
            for _ in 0..EACH {
                let ack = {
                    let mut calls = calls.lock().expect("no panic");
                    *calls += 1;
                    writer.append(vec![heard("r", format!("{calls}"))])
                };
                ack.await.expect("appends");
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(|task| task.expect("the task ends"));
    let entries = read_all(&*journal, "s").await;
    assert_eq!(entries.len(), TASKS * EACH);
    assert!(entries.iter().all(|e| text(e) == e.seq.to_string()));
}

/// An append whose future is dropped is stored anyway, before those of later calls.
pub async fn entries_are_handed_over_when_append_is_called(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    drop(writer.append(vec![heard("r", "1")]));
    let late = writer.append(vec![heard("r", "2")]);
    assert_eq!(append(&*writer, vec![heard("r", "3")]).await, 3);
    assert_eq!(late.await.expect("appends"), 2);
    let texts: Vec<_> = read_all(&*journal, "s").await.iter().map(|e| text(e)).collect();
    assert_eq!(texts, ["1", "2", "3"]);
}

/// An entry can be read once its append is acknowledged.
pub async fn what_is_acknowledged_can_be_read(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    for n in 1..=50 {
        append(&*writer, vec![heard("r", "x")]).await;
        assert_eq!(journal.read("s", n - 1, 10).await.expect("reads").len(), 1);
    }
}

/// 500 entries are the same in pages of 1, 199, 200, 201 and 500.
pub async fn pages_of_any_size_read_the_same(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    append(&*writer, (1..=500).map(|n| heard(&format!("r{}", n % 7), format!("{n}"))).collect()).await;
    let whole = read_by(&*journal, "s", usize::MAX).await;
    assert_eq!(whole.len(), 500);
    for page in [1, 199, 200, 201, 500] {
        assert_eq!(read_by(&*journal, "s", page).await, whole, "in pages of {page}");
    }
    assert!(journal.read("s", 500, 10).await.expect("reads").is_empty());
    assert!(journal.read("s", u64::MAX, 10).await.expect("reads").is_empty());
    assert!(journal.read("s", 0, 0).await.expect("reads").is_empty());
}

/// A session that was never written to has no entries, and reading does not create it.
pub async fn an_unknown_session_is_empty(journal: Arc<dyn Journal>) {
    assert!(journal.read("nobody", 0, 10).await.expect("reads").is_empty());
    assert!(journal.sessions().await.expect("lists").is_empty());
}

/// Each session has its own numbers.
pub async fn sessions_are_numbered_apart(journal: Arc<dyn Journal>) {
    let one = open(&*journal, "one", "a").await;
    let two = open(&*journal, "two", "a").await;
    for n in 1..=3 {
        assert_eq!(append(&*one, vec![heard("r", "one")]).await, n);
        assert_eq!(append(&*two, vec![heard("r", "two")]).await, n);
    }
    assert!(read_all(&*journal, "two").await.iter().all(|e| text(e) == "two"));
}
