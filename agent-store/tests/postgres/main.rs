//! The PostgreSQL journal: the conformance suite, and what is its own.

#![cfg(all(unix, feature = "postgres"))]

mod leases;
mod ledger;
mod losses;
mod server;
mod tls;
mod upkeep;

use std::sync::Arc;

use agent_core::{Entry, EntryBody, Journal, JournalWriter, MemoryJournal, Message};
use server::Place;

mod conformance {
    use super::{Arc, Journal, MemoryJournal, Place};

    // Without a server, which was said, there is nothing to test.
    agent_store::journal_conformance!(|| {
        let journal: Arc<dyn Journal> = match Place::new() {
            Some(place) => {
                let runtime = tokio::runtime::Handle::current();
                Arc::new(tokio::task::block_in_place(|| runtime.block_on(place.open())))
            }
            None => Arc::new(MemoryJournal::default()),
        };
        (journal, ())
    });
}

mod ledger_conformance {
    use agent_core::{Ledger, MemoryLedger};

    use super::{Arc, Place, ledger};

    agent_store::ledger_conformance!(|| {
        let (place, memory) = (Place::new(), Arc::new(MemoryLedger::new()));
        let open = move || -> Arc<dyn Ledger> {
            let Some(place) = &place else { return memory.clone() };
            let runtime = tokio::runtime::Handle::current();
            Arc::new(tokio::task::block_in_place(|| runtime.block_on(ledger::open(place))))
        };
        (open, ())
    });
}

fn heard(text: &str) -> Entry {
    Entry::new("run-1".into(), 1_700_000_000_000, EntryBody::MessageAppended { message: Message::user(text) })
}

async fn append(writer: &dyn JournalWriter, texts: &[&str]) -> u64 {
    writer.append(texts.iter().copied().map(heard).collect()).await.expect("appends")
}

/// The texts of a session; every number is checked on the way.
async fn texts(journal: &dyn Journal, session: &str) -> Vec<String> {
    let entries = journal.read(session, 0, usize::MAX).await.expect("reads");
    assert!(entries.iter().map(|e| e.seq).eq(1..=entries.len() as u64), "numbers without gaps");
    let text = |e: &Arc<Entry>| match &e.body {
        EntryBody::MessageAppended { message } => message.text(),
        other => panic!("not a message: {other:?}"),
    };
    entries.iter().map(text).collect()
}
