//! The suite, over the journals of this workspace.

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

mod ledger_in_memory {
    use std::sync::Arc;

    use agent_core::{Ledger, MemoryLedger};

    agent_store::ledger_conformance!(|| {
        let ledger = Arc::new(MemoryLedger::new());
        (move || ledger.clone() as Arc<dyn Ledger>, ())
    });
}

#[cfg(feature = "sqlite")]
mod ledger_in_sqlite {
    use std::sync::Arc;

    use agent_core::Ledger;

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
    use agent_core::{ChatMessageStore, Memory, MemoryStore, Message};
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
