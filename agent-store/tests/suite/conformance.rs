//! Conformance tests of the journals of this workspace.

mod memory {
    agent_store::journal_conformance!(|| (agent_core::MemoryJournal::default(), ()));
}

#[cfg(feature = "sqlite")]
mod sqlite {
    agent_store::journal_conformance!(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let journal = agent_store::SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
        (journal, dir)
    });
}

#[cfg(feature = "sqlite")]
mod sqlite_failures {
    use agent_store::conformance::UNKEPT;

    agent_store::journal_failure_conformance!(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("agent.db");
        let journal = agent_store::SqliteJournal::open(&path).expect("opens");
        let refuse = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON entry WHEN NEW.body LIKE '%{UNKEPT}%'
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        );
        rusqlite::Connection::open(&path).and_then(|file| file.execute_batch(&refuse)).expect("a trigger");
        (journal, dir)
    });
}

mod ledger_in_memory {
    use std::sync::Arc;

    use agent_core::budget::{Ledger, MemoryLedger};

    agent_store::ledger_conformance!(|| {
        let ledger = Arc::new(MemoryLedger::new());
        (move || ledger.clone() as Arc<dyn Ledger>, ())
    });
}

#[cfg(feature = "sqlite")]
mod ledger_in_sqlite {
    use std::sync::Arc;

    use agent_core::budget::Ledger;

    agent_store::ledger_conformance!(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("budget.db");
        let open = move || Arc::new(agent_store::SqliteLedger::open(&path).expect("opens")) as Arc<dyn Ledger>;
        (open, dir)
    });
}

mod messages_in_memory {
    agent_store::message_store_conformance!(|| (agent_store::InMemoryChatMessageStore::default(), ()));
}

mod memories_in_memory {
    agent_store::memory_store_conformance!(|| (agent_store::InMemoryMemoryStore::default(), ()));
}

#[cfg(feature = "sqlite")]
mod messages_in_sqlite {
    agent_store::message_store_conformance!(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let store = agent_store::SqliteChatMessageStore::open(dir.path().join("store.db")).expect("opens");
        (store, dir)
    });
}

#[cfg(feature = "sqlite")]
mod memories_in_sqlite {
    agent_store::memory_store_conformance!(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let store = agent_store::SqliteMemoryStore::open(dir.path().join("store.db")).expect("opens");
        (store, dir)
    });
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn both_stores_share_a_file_and_leave_a_journal_alone() {
    use agent_core::Message;
    use agent_retrieval::memory::{ChatMessageStore, Memory, MemoryStore};
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("new/directory/store.db");
    for round in 1..=2 {
        let messages = agent_store::SqliteChatMessageStore::open(&path).expect("opens");
        let memories = agent_store::SqliteMemoryStore::open(&path).expect("opens");
        messages.write("c", vec![Message::user("hello").into()]).await.expect("writes");
        memories.add("u", vec![Memory::new("hello")]).await.expect("adds");
        assert_eq!(messages.count("c").await.expect("counts"), round);
    }
    let journal = dir.path().join("agent.db");
    drop(agent_store::SqliteJournal::open(&journal).expect("opens"));
    for path in [journal.as_path(), dir.path()] {
        let e = agent_store::SqliteMemoryStore::open(path).expect_err("refused");
        assert_eq!(e.kind(), agent_core::ErrorKind::Store, "{e}");
    }
}

#[cfg(feature = "sqlite")]
mod filters {
    use agent_retrieval::memory::{Comparison, Filter, Memory, MemoryQuery, MemoryStore};
    use proptest::{collection::vec, prelude::*};
    use serde_json::{Value, json};

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2..3_i32).prop_map(Value::from),
            (-4..5_i32).prop_map(|halves| json!(f64::from(halves) / 2.0)),
            "[ab]{0,2}".prop_map(Value::from),
            vec(0..3_i32, 0..3).prop_map(Value::from),
        ]
    }

    fn filter() -> impl Strategy<Value = Filter> {
        use Comparison::{Equal, Greater, GreaterOrEqual, In, Less, LessOrEqual, NotEqual, NotIn};
        let all = vec![Equal, NotEqual, Greater, GreaterOrEqual, Less, LessOrEqual, In, NotIn];
        let field = ("[xyz]", prop::sample::select(all), value()).prop_map(|(field, is, value)| Filter::Field {
            field,
            is,
            value,
        });
        field.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..3).prop_map(Filter::And),
                vec(inner.clone(), 0..3).prop_map(Filter::Or),
                inner.prop_map(Filter::not),
            ]
        })
    }

    async fn found(store: &dyn MemoryStore, memories: &[Memory], query: &MemoryQuery) -> Vec<Option<String>> {
        store.add("ada", memories.to_vec()).await.expect("adds");
        store.search("ada", query).await.expect("searches").into_iter().map(|found| found.memory.id).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_filter_finds_the_same_in_memory_and_in_sqlite_and_as_data(
            fields in vec(prop::collection::btree_map("[xyz]", value(), 0..3), 1..8),
            filter in filter(),
            top_k in 0..9_usize,
        ) {
            let memories: Vec<_> = (0..).zip(fields).map(|(n, fields)| {
                let mut memory = Memory::new("the same text").with_id(format!("{n}"));
                memory.metadata = fields.into_iter().collect();
                memory
            }).collect();
            let data: Filter = serde_json::from_str(&serde_json::to_string(&filter).expect("JSON")).expect("a filter");
            let fits = |memory: &&Memory| filter.matches(&memory.metadata);
            let fit = memories.iter().filter(fits).count().min(top_k);
            let query = MemoryQuery::new("").top_k(top_k);
            let dir = tempfile::tempdir().expect("a directory");
            let sqlite = agent_store::SqliteMemoryStore::open(dir.path().join("store.db")).expect("opens");
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
            let (one, two) = runtime.block_on(async {
                let one = found(&agent_store::InMemoryMemoryStore::default(), &memories, &query.clone().filter(filter)).await;
                (one, found(&sqlite, &memories, &query.filter(data)).await)
            });
            prop_assert_eq!((one.len(), one), (fit, two));
        }
    }
}
