//! `agent worker`.

use std::{sync::Arc, time::Duration};

use agent::{
    Error, PostgresQueue, Result,
    config::StoreAddress,
    store::{PostgresQueueBuilder, QueueLimits},
};
use serde_json::json;

use crate::{
    cli::{Global, Worker},
    load::assemble_all,
    output::{End, plain, print_json},
};

/// Runs what a queue has until somebody ends it; then brings what is under way to a safe point and puts it back.
pub(crate) async fn worker(wanted: Worker, global: &Global) -> Result<End> {
    let (agents, address) = assemble_all(&wanted.files, global)?;
    let limits = wanted.per_tenant.into_iter().fold(QueueLimits::default(), QueueLimits::running_per_tenant);
    let queue = queue_at(&address)?.limits(limits).listen(!wanted.pooled).connect().await?;
    let lease = Duration::from_secs(wanted.lease);
    let journal = address.open_leased(lease).await?;
    let mut worker = agent::Worker::builder(Arc::new(queue)).at_once(wanted.at_once).lease(lease);
    worker = worker.drain_within(Duration::from_secs(wanted.drain));
    worker = wanted.worker.into_iter().fold(worker, agent::WorkerBuilder::name);
    for (builder, _) in agents {
        worker = worker.agent(builder.store(journal.clone()).build()?);
    }
    let worker = worker.build()?;
    match global.json {
        true => print_json(&json!({"worker": worker.name()}))?,
        false => eprintln!("{}", plain(&format!("agent: worker '{}' is at work; Ctrl-C ends it", worker.name()))),
    }
    let stopped = async {
        if agent::shutdown_signal().await.is_err() {
            std::future::pending::<()>().await; // no signal can be heard here
        }
        eprintln!("agent: ending; runs are brought to a safe point, and put back");
    };
    worker.run_until(stopped).await;
    Ok(End::Finished)
}

/// The queue beside a store.
///
/// # Errors
/// If the store is in no database that workers can share.
pub(super) fn queue_at(address: &StoreAddress) -> Result<PostgresQueueBuilder> {
    match address {
        StoreAddress::Postgres(url) => Ok(PostgresQueue::builder(url)),
        _ => Err(Error::config("workers share a queue in PostgreSQL: name the database, with --store postgres://..")),
    }
}
