//! Entries are read as they were written.

use std::sync::Arc;

use agent_core::{
    Journal, MemoryJournal,
    journal::{Entry, EntryBody},
};

use super::{
    append, every_kind, open, read_all,
    sample::{ODD_JSON, full_answer, heard, numbers},
};

/// Covers every field of every kind of entry, including unknown kinds and newer versions.
pub async fn every_kind_of_entry_survives_unchanged(journal: Arc<dyn Journal>) {
    let mut entries = every_kind("s", "a");
    entries[1].version = 7;
    entries[2].time = u64::MAX;
    let writer = open(&*journal, "s", "a").await;
    append(&*writer, entries.clone()).await;
    (1..).zip(&mut entries).for_each(|(seq, entry)| entry.seq = seq);
    let read = read_all(&*journal, "s").await;
    assert!(read.iter().map(|entry| &**entry).eq(&entries), "{read:#?}\n is not \n{entries:#?}");
}

/// A provider's raw JSON comes back byte for byte: the provider would reject its own message
/// otherwise.
pub async fn bytes_of_a_provider_survive_unchanged(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    let body = EntryBody::ModelAccepted { step: 1, message: Some(full_answer()), exit: None };
    append(&*writer, vec![Entry::new("r".into(), 0, body)]).await;
    match &read_all(&*journal, "s").await[0].body {
        EntryBody::ModelAccepted { message: Some(message), .. } => {
            assert_eq!(message.raw().expect("raw").json(), ODD_JSON);
            assert_eq!(message.blocks(), full_answer().blocks());
        }
        other => panic!("another entry: {other:?}"),
    }
}

/// A long text in many scripts.
pub async fn an_entry_of_a_megabyte_survives(journal: Arc<dyn Journal>) {
    let text = "aé日\u{1f600}\"\\\n\u{1}".repeat(1 << 17);
    assert!(text.len() >= 1 << 20);
    let writer = open(&*journal, "s", "a").await;
    append(&*writer, vec![heard("r", "before"), heard("r", text.clone()), heard("r", "after")]).await;
    assert_eq!(super::sample::text(&read_all(&*journal, "s").await[1]), text);
}

/// The same large texts in several entries, sessions and fields of one entry, beside small ones.
pub async fn large_payloads_are_the_same_wherever_they_are_read(journal: Arc<dyn Journal>) {
    let large = |n: usize| format!("{n}\"\\é\n").repeat(3000);
    let mut wanted = Vec::new();
    for session in ["s", "t"] {
        let writer = open(&*journal, session, "a").await;
        let value = serde_json::json!({ "a": [large(1), "", large(2)], "b": large(1), large(3): "small" });
        let both = EntryBody::Decided { name: large(2), value, beginning: false };
        let raw = EntryBody::ModelAccepted { step: 1, message: Some(full_answer()), exit: None };
        let unknown = EntryBody::Unknown(serde_json::json!({ "from_the_future": large(1) }));
        wanted =
            vec![heard("r", large(1)).body, both, raw, unknown, heard("r", "small").body, heard("r", large(1)).body];
        append(&*writer, wanted.iter().map(|body| Entry::new("r".into(), 0, body.clone())).collect()).await;
    }
    for session in ["s", "t"] {
        let bodies: Vec<_> = read_all(&*journal, session).await.iter().map(|entry| entry.body.clone()).collect();
        assert!(bodies == wanted, "session {session}");
    }
    assert!(journal.delete("s").await.expect("deletes"));
    let bodies: Vec<_> = read_all(&*journal, "t").await.iter().map(|entry| entry.body.clone()).collect();
    assert!(bodies == wanted, "content shared with the deleted session remains");
}

/// A replayed decision must be the same to the last bit of a number.
pub async fn numbers_survive_to_the_last_bit(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    let body = EntryBody::Decided { name: "n".into(), value: numbers(), beginning: false };
    append(&*writer, vec![Entry::new("r".into(), 0, body.clone())]).await;
    assert_eq!(read_all(&*journal, "s").await[0].body, body);
}

/// The fold of the entries does not depend on the store.
pub async fn the_fold_is_the_same_as_in_memory(journal: Arc<dyn Journal>) {
    let memory = MemoryJournal::default();
    let (ours, theirs) = (open(&*journal, "s", "a").await, open(&memory, "s", "a").await);
    for agent in ["a", "b", "a"] {
        let entries = every_kind("s", agent);
        append(&*ours, entries.clone()).await;
        append(&*theirs, entries).await;
    }
    for agent in ["a", "b", "nobody"] {
        let ours = journal.index("s").await.expect("folds").look(|index| index.view(agent));
        let theirs = memory.index("s").await.expect("folds").look(|index| index.view(agent));
        assert_eq!(ours, theirs);
        assert_eq!(ours.history.is_empty(), agent == "nobody", "the sample has content");
    }
}
