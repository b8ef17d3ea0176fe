//! Statements of senders.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::Answer;
use agent_dispatch::{Dispatched, Job, JobStatus, RunAddress, Signal};
use tokio_postgres::{Client, types::Type};

use super::{ours, statements::Statements};
use crate::{
    postgres::connections::Done,
    queue::{
        QueueLimits,
        record::{Record, Taken, cancels, waits_for_nothing, written},
    },
};

const FOR_UPDATE: &str = "FOR UPDATE";

pub(super) async fn dispatch(
    client: &Client,
    statements: &Statements,
    job: Arc<Job>,
    limits: QueueLimits,
) -> Done<Dispatched> {
    let dispatched = ours!(insert(client, statements, &job, &limits).await?);
    if dispatched == Dispatched::New {
        statements.notify(client).await?;
    }
    Ok(Ok(dispatched))
}

/// Inserts a job within the limits, unless there is one for its run.
pub(super) async fn insert(
    client: &Client,
    statements: &Statements,
    job: &Job,
    limits: &QueueLimits,
) -> Done<Dispatched> {
    if statements.job_of(client, &job.at, "").await?.is_some() {
        return Ok(Ok(Dispatched::Known));
    }
    let (queued, of_tenant) = statements.queued(client, &job.tenant, limits.queued, limits.queued_per_tenant).await?;
    ours!(limits.admit(queued, of_tenant));
    let body = ours!(written(job));
    let record = Record::new(job.clone(), statements.now(client).await?);
    Ok(Ok(match statements.insert(client, &record, &body).await? {
        true => Dispatched::New,
        false => Dispatched::Known,
    }))
}

pub(super) async fn answer(
    client: &Client,
    statements: &Statements,
    run: RunAddress,
    answers: BTreeMap<String, Answer>,
) -> Done<()> {
    let Some(stored) = statements.job_of(client, &run, FOR_UPDATE).await? else {
        return Ok(Err(waits_for_nothing(&run)));
    };
    ours!(written(&answers));
    let (id, now) = (stored.id, stored.now);
    let mut record = ours!(stored.record());
    ours!(record.answer(answers, now));
    statements.store(client, id, &record).await?;
    statements.notify(client).await.map(Ok)
}

pub(super) async fn signal(client: &Client, statements: &Statements, run: RunAddress, signal: Signal) -> Done<bool> {
    let Some(stored) = statements.job_of(client, &run, FOR_UPDATE).await? else { return Ok(Ok(false)) };
    let body = ours!(written(&signal));
    let (id, now) = (stored.id, stored.now);
    let mut record = ours!(stored.record());
    let unheard = statements.unheard(client, id).await?;
    let taken = record.signal(&signal, cancels(unheard.iter().map(|(_, signal)| signal)), now);
    if taken == Taken::No {
        return Ok(Ok(false));
    }
    statements.store(client, id, &record).await?;
    if taken == Taken::ForRun {
        let sql = "INSERT INTO {schema}.signal (job, body) VALUES ($1, $2)";
        statements.rows(client, sql, &[(&id, Type::INT8), (&body, Type::TEXT)]).await?;
    }
    statements.notify(client).await?;
    Ok(Ok(true))
}

pub(super) async fn standing(client: &Client, statements: &Statements, run: RunAddress) -> Done<Option<JobStatus>> {
    let Some(stored) = statements.job_of(client, &run, "").await? else { return Ok(Ok(None)) };
    Ok(Ok(Some(stored.shown().standing())))
}
