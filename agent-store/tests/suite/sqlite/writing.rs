//! Grouping, order and failures of writes.

use agent_core::{ErrorKind, Journal};
use agent_store::{Durability, SqliteJournal};
use futures::future::join_all;

use super::{Place, append, heard, texts};

#[tokio::test]
async fn appends_that_wait_together_share_one_commit() {
    let place = Place::new();
    let journal = place.open();
    let writer = journal.open("s", "a").await.expect("is free");
    let before = journal.stats();
    let lock = place.locked();
    // While another process holds the lock, the thread waits with the first append; all others
    // queue behind it.
    let acks: Vec<_> = (0..64).map(|n| writer.append(vec![heard(&n.to_string())])).collect();
    lock.execute_batch("COMMIT").expect("commits");
    let firsts: Vec<_> = join_all(acks).await.into_iter().map(|ack| ack.expect("appends")).collect();
    assert!(firsts.into_iter().eq(1..=64));
    let after = journal.stats();
    assert_eq!(after.jobs - before.jobs, 64);
    assert!(after.commits - before.commits <= 2, "{before:?} {after:?}");
}

#[tokio::test]
async fn a_group_is_no_larger_than_it_may_be() {
    let place = Place::new();
    let journal = SqliteJournal::builder(place.path()).group(1).durability(Durability::Async).open().expect("opens");
    let writer = journal.open("s", "a").await.expect("is free");
    let before = journal.stats();
    let acks: Vec<_> = (0..10).map(|n| writer.append(vec![heard(&n.to_string())])).collect();
    join_all(acks).await.into_iter().for_each(|ack| assert!(ack.is_ok()));
    assert_eq!(journal.stats().commits - before.commits, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_writers_through_four_journals_lose_nothing() {
    let place = Place::new();
    let journals: Vec<_> = (0..4).map(|_| place.open()).collect();
    let tasks = (0..16_usize).map(|w| {
        let journal = journals[w % 4].clone();
        tokio::spawn(async move {
            let writer = journal.open("s", &format!("agent-{w}")).await.expect("is free");
            for n in 0..20 {
                append(&*writer, &[&format!("{w}.{n}.a"), &format!("{w}.{n}.b")]).await;
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(|task| task.expect("the task ends"));
    let mut all = texts(&journals[0], "s").await;
    assert!(all.chunks(2).all(|pair| pair[0].replace('a', "b") == pair[1]), "batches are in one piece");
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 16 * 20 * 2);
}

#[tokio::test]
async fn dropping_the_last_handle_writes_what_was_handed_over_and_leaves_one_file() {
    let place = Place::new();
    let journal = place.open();
    let writer = journal.open("s", "a").await.expect("is free");
    for n in 0..100 {
        drop(writer.append(vec![heard(&n.to_string())]));
    }
    drop(journal);
    drop(writer);
    let files: Vec<_> = place.0.path().read_dir().expect("lists").map(|f| f.expect("a file").file_name()).collect();
    assert_eq!(files, ["agent.db"]);
    assert_eq!(texts(&place.open(), "s").await.len(), 100);
}

#[tokio::test]
async fn a_full_queue_refuses_and_what_comes_after_it_too() {
    let place = Place::new();
    let journal = SqliteJournal::builder(place.path()).queue_bytes(2000).open().expect("opens");
    let writer = journal.open("s", "a").await.expect("is free");
    let other = journal.open("s", "b").await.expect("is free");
    let large = "x".repeat(1500);
    let lock = place.locked();
    // The thread may have taken the first; the second then fills the queue, and the third does not
    // fit.
    let acks: Vec<_> = (0..3).map(|_| writer.append(vec![heard(&large)])).collect();
    lock.execute_batch("COMMIT").expect("commits");
    let answers = join_all(acks).await;
    assert_eq!(
        answers[0].as_ref().ok(),
        Some(&1),
        "entries larger than the rest of the queue are taken when it is empty"
    );
    let full = answers[2].as_ref().expect_err("no room");
    assert!(full.is_retryable() || full.message().contains("earlier append"), "{full}");
    assert!(answers.iter().filter_map(|a| a.as_ref().err()).any(|e| e.message().contains("cannot keep up")));
    let kept = answers.iter().filter(|a| a.is_ok()).count();
    assert_eq!(writer.append(vec![heard("small")]).await.expect_err("after a hole").kind(), ErrorKind::Store);
    assert_eq!(append(&*other, &["still works"]).await, kept as u64 + 1);
}
