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
