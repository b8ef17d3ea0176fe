//! The PostgreSQL journal: conformance tests and further ones.

#![cfg(all(unix, feature = "postgres"))]

mod backup;
use crate::common;
mod erasure;
mod leases;
mod ledger;
mod losses;
mod pooler;
mod queue;
mod relay;
mod server;
mod stalling;
mod tls;
mod upkeep;
mod vectors;
mod waiting;

use std::sync::Arc;

use agent_core::{Journal, MemoryJournal};
use common::{append, heard, kind, texts};
use server::Place;

mod conformance {
    use super::{Arc, Journal, MemoryJournal, Place, block_on};

    // Without a server, which is logged, there is nothing to test.
    agent_store::journal_conformance!(|| {
        let journal: Arc<dyn Journal> = match Place::new() {
            Some(place) => Arc::new(block_on(place.open())),
            None => Arc::new(MemoryJournal::default()),
        };
        (journal, ())
    });
}

mod failures {
    use agent_store::conformance::{self, UNKEPT};

    use super::{Arc, Journal, Place};

    async fn failing(place: &Place) -> Arc<dyn Journal> {
        let journal = place.open().await;
        place.execute(&format!("ALTER TABLE entry ADD CHECK (body NOT LIKE '%{UNKEPT}%')")).await;
        Arc::new(journal)
    }

    #[tokio::test]
    async fn a_writer_whose_append_failed_refuses_what_follows() {
        let Some(place) = Place::new() else { return };
        conformance::a_writer_whose_append_failed_refuses_what_follows(failing(&place).await).await;
    }

    #[tokio::test]
    async fn a_failed_append_concerns_no_other_writer() {
        let Some(place) = Place::new() else { return };
        conformance::a_failed_append_concerns_no_other_writer(failing(&place).await).await;
    }
}

mod ledger_conformance {
    use agent_core::budget::{Ledger, MemoryLedger};

    use super::{Arc, Place, block_on, ledger};

    agent_store::ledger_conformance!(|| {
        let (place, memory) = (Place::new(), Arc::new(MemoryLedger::new()));
        let open = move || -> Arc<dyn Ledger> {
            let Some(place) = &place else { return memory.clone() };
            Arc::new(block_on(ledger::open(place)))
        };
        (open, ())
    });
}

mod queue_conformance {
    use super::{Place, queue};

    agent_store::queue_conformance!(|| (queue::opener(Place::new, true), ()));
}

/// Blocks on a future on a runtime's thread.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work))
}
