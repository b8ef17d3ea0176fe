//! The conformance tests behind a pooler in transaction mode: nothing may depend on a database
//! session.

use std::sync::Arc;

use agent_core::{
    Journal, MemoryJournal,
    budget::{Ledger, MemoryLedger},
};
use agent_store::{PostgresJournal, PostgresLedger};
use tokio_postgres::NoTls;

use super::{
    append, block_on,
    server::{Place, Server},
    texts,
};

/// Returns a place that is reached through the pooler.
fn pooled() -> Option<Place> {
    Some(Place { url: format!("{} pooled=true", Server::get()?.pooled_url()?), schema: Server::schema() })
}

async fn open(place: &Place) -> PostgresJournal {
    place.builder().connect().await.expect("connects")
}

mod journal {
    use super::*;

    agent_store::journal_conformance!(|| {
        let journal: Arc<dyn Journal> = match pooled() {
            Some(place) => Arc::new(block_on(open(&place))),
            None => Arc::new(MemoryJournal::default()),
        };
        (journal, ())
    });
}

mod ledger {
    use super::*;

    agent_store::ledger_conformance!(|| {
        let (place, memory) = (pooled(), Arc::new(MemoryLedger::new()));
        let open = move || -> Arc<dyn Ledger> {
            let Some(place) = &place else { return memory.clone() };
            Arc::new(block_on(crate::postgres::ledger::open(place)))
        };
        (open, ())
    });
}

mod queue {
    use super::pooled;

    agent_store::queue_conformance!(|| (crate::postgres::queue::opener(pooled, false), ()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_journals_of_several_schemas_share_a_few_connections_and_leave_no_state_in_them() {
    let (Some(one), Some(two)) = (pooled(), pooled()) else { return };
    let journals = [open(&one).await, open(&two).await, open(&one).await, open(&two).await];
    let ledger = PostgresLedger::connect(&one.url).await.expect("connects");
    let tasks = (0_usize..16).map(|n| {
        let journal = journals[n % 4].clone();
        tokio::spawn(async move {
            let writer = journal.open(&format!("s{n}"), "a").await.expect("is free");
            for round in 0..10 {
                append(&*writer, &[&format!("{n}.{round}")]).await;
            }
            drop(writer);
            texts(&journal, &format!("s{n}")).await
        })
    });
    for (n, read) in futures::future::join_all(tasks).await.into_iter().enumerate() {
        let written = (0..10).map(|round| format!("{n}.{round}"));
        assert!(written.eq(read.expect("no panic")));
    }
    assert!(ledger.balance("x").await.is_ok());
    let (client, connection) =
        tokio_postgres::connect(&one.url.replace("pooled=true", ""), NoTls).await.expect("connects");
    drop(tokio::spawn(connection));
    for _ in 0..20 {
        let sql = "SELECT current_setting('search_path'), current_setting('synchronous_commit'),
                          (SELECT count(*) FROM pg_prepared_statements)";
        let row = client.query_typed_one(sql, &[]).await.expect("reads");
        let state: (String, String, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(state, ("\"$user\", public".to_owned(), "on".to_owned(), 0));
    }
}
