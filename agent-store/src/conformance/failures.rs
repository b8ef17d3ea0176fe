//! Failures to store a batch.

use std::sync::Arc;

use agent_core::{ErrorKind, Journal};
use futures::future::join_all;

use super::{
    append, open, read_all,
    sample::{heard, text},
};

/// Text that a journal under test fails to store.
pub const UNKEPT: &str = "this cannot be kept";

async fn texts(journal: &dyn Journal, session: &str) -> Vec<String> {
    read_all(journal, session).await.iter().map(|entry| text(entry)).collect()
}

/// After a failed append, nothing enqueued behind it is stored, before or after the failure is
/// known: a gap in the log would cause an effect to be repeated.
pub async fn a_writer_whose_append_failed_refuses_what_follows(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    append(&*writer, vec![heard("r", "1")]).await;
    let at_once = [vec!["2"], vec!["lost", UNKEPT], vec!["behind"], vec!["further behind"]];
    let acks = at_once.map(|texts| writer.append(texts.into_iter().map(|text| heard("r", text)).collect()));
    let mut answers = join_all(acks).await.into_iter();
    assert_eq!(answers.next().and_then(Result::ok), Some(2), "earlier entries are stored");
    for answer in answers {
        assert_eq!(answer.expect_err("nothing is kept from the failure on").kind(), ErrorKind::Store);
    }
    for _ in 0..2 {
        let e = writer.append(vec![heard("r", "after it is known")]).await.expect_err("refused");
        assert_eq!(e.kind(), ErrorKind::Store);
    }
    assert_eq!(texts(&*journal, "s").await, ["1", "2"]);
    drop(writer);
    let anew = open(&*journal, "s", "a").await;
    assert_eq!(append(&*anew, vec![heard("r", "3")]).await, 3, "a new writer continues after the stored entries");
    assert_eq!(texts(&*journal, "s").await, ["1", "2", "3"]);
}

/// Neither for the same session nor for another one, even with both batches in flight.
pub async fn a_failed_append_concerns_no_other_writer(journal: Arc<dyn Journal>) {
    let failing = open(&*journal, "s", "a").await;
    let others = [open(&*journal, "s", "b").await, open(&*journal, "t", "a").await];
    let failed = failing.append(vec![heard("r", UNKEPT)]);
    let acks = others.iter().map(|writer| writer.append(vec![heard("r", "kept")]));
    assert!(join_all(acks).await.into_iter().all(|ack| ack.is_ok()));
    assert_eq!(failed.await.expect_err("not kept").kind(), ErrorKind::Store);
    for (writer, session) in others.iter().zip(["s", "t"]) {
        append(&**writer, vec![heard("r", "later")]).await;
        assert_eq!(texts(&*journal, session).await, ["kept", "later"]);
    }
}
