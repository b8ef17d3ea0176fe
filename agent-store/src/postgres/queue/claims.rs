//! What workers ask of the queue.

use std::time::Duration;

use agent_core::{
    Result,
    dispatch::{Claim, Claimed, Outcome, Schedule, StandingKind, Told},
};
use tokio_postgres::{Client, Error, types::Type};

use super::{
    ours,
    row::unreadable,
    sending,
    statements::{Candidates, Statements},
};
use crate::{
    postgres::{connections::Done, query::Parameter},
    queue::{QueueLimits, Times, in_words, record::millis},
};

/// Those whose lease ran out, and those that rest for what has ended, that nobody is about to change.
const OVERDUE: &str = "WHERE standing = 'running' AND expires <= $1 OR standing = 'at_rest' AND ready_at <= $1
    ORDER BY id FOR UPDATE SKIP LOCKED";

const DUE: &str = "SELECT body, due FROM {schema}.schedule WHERE due <= $1 ORDER BY name FOR UPDATE SKIP LOCKED";

pub(super) async fn claim(
    client: &Client,
    statements: &Statements,
    by: Claim,
    limits: QueueLimits,
) -> Done<Option<Claimed>> {
    statements.lock_claims(client).await?;
    let now = statements.now(client).await?;
    for stored in statements.jobs(client, OVERDUE, &[(&now.cast_signed(), Type::INT8)]).await? {
        let mut record = ours!(stored.record());
        record.wake(now);
        record.changed = now;
        statements.store(client, stored.id, &record).await?;
    }
    ours!(fire(client, statements, &limits, now).await?);
    let wanted = candidates(&by, &limits);
    let Some((id, tenant)) = statements.candidate(client, &wanted, now).await? else { return Ok(Ok(None)) };
    let Some(stored) = statements.jobs(client, "WHERE id = $1 FOR UPDATE", &[(&id, Type::INT8)]).await?.pop() else {
        return Ok(Ok(None));
    };
    let mut record = ours!(stored.record());
    let receipt = statements.number(client, "SELECT nextval('{schema}.receipt')", &[]).await?.unwrap_or_default();
    let claimed = record.claim(receipt.cast_unsigned(), &by.worker, stored.now + millis(by.lease));
    record.changed = stored.now;
    statements.store(client, id, &record).await?;
    statements.take_turn(client, &tenant).await?;
    Ok(Ok(Some(claimed)))
}

/// Makes the jobs that are due. One that does not fit now stays due.
async fn fire(client: &Client, statements: &Statements, limits: &QueueLimits, now: u64) -> Done<()> {
    let at = now.cast_signed();
    for row in statements.rows(client, DUE, &[(&at, Type::INT8)]).await? {
        let (body, due): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let schedule: Schedule = ours!(serde_json::from_str(body).map_err(|e| unreadable(0, e)));
        let job = schedule.job_at(&in_words(due.cast_unsigned()));
        if sending::insert(client, statements, &job, limits).await?.is_err() {
            continue;
        }
        let name = schedule.name.as_bytes();
        match Times::of(&schedule).and_then(|times| times.after(now)) {
            Ok(next) => {
                let (sql, next) = ("UPDATE {schema}.schedule SET due = $2 WHERE name = $1", next.cast_signed());
                statements.rows(client, sql, &[(&name, Type::BYTEA), (&next, Type::INT8)]).await?;
            }
            // It is never due again.
            Err(_) => {
                let sql = "DELETE FROM {schema}.schedule WHERE name = $1";
                statements.rows(client, sql, &[(&name, Type::BYTEA)]).await?;
            }
        }
    }
    Ok(Ok(()))
}

fn candidates(by: &Claim, limits: &QueueLimits) -> Candidates {
    let most = |most: u64| i64::try_from(most).unwrap_or(i64::MAX);
    let bytes = |name: &str| name.as_bytes().to_vec();
    Candidates {
        agents: by.agents.iter().map(|agent| (bytes(agent), most(limits.of_agent(agent)))).unzip(),
        per_tenant: most(limits.per_tenant.unwrap_or(u64::MAX)),
        tenants: limits.tenants.iter().map(|(tenant, own)| (bytes(tenant), most(*own))).unzip(),
    }
}

pub(super) async fn renew(
    client: &Client,
    statements: &Statements,
    receipts: Vec<u64>,
    lease: Duration,
) -> Done<Vec<u64>> {
    let sql = "UPDATE {schema}.job SET expires = (extract(epoch FROM clock_timestamp()) * 1000)::int8 + $2
               WHERE receipt = ANY($1) RETURNING receipt";
    let (receipts, lease) = (signed(&receipts), millis(lease).cast_signed());
    let rows = statements.rows(client, sql, &[(&receipts, Type::INT8_ARRAY), (&lease, Type::INT8)]).await?;
    Ok(Ok(rows.iter().map(|row| Ok(row.try_get::<_, i64>(0)?.cast_unsigned())).collect::<Result<_, Error>>()?))
}

pub(super) async fn release(
    client: &Client,
    statements: &Statements,
    receipt: u64,
    outcome: Outcome,
    heard: Vec<u64>,
) -> Done<bool> {
    let receipt = receipt.cast_signed();
    let held = statements.jobs(client, "WHERE receipt = $1 FOR UPDATE", &[(&receipt, Type::INT8)]).await?;
    let Some(stored) = held.into_iter().next() else { return Ok(Ok(false)) };
    delete_signals(client, statements, &heard).await?;
    let id: [(Parameter<'_>, Type); 1] = [(&stored.id, Type::INT8)];
    let told = statements.rows(client, "SELECT FROM {schema}.signal WHERE job = $1 LIMIT 1", &id).await?;
    let mut record = ours!(stored.record());
    record.release(outcome, !told.is_empty(), stored.now);
    record.changed = stored.now;
    statements.store(client, stored.id, &record).await?;
    match record.standing {
        StandingKind::Queued => statements.notify(client).await?,
        _ if told.is_empty() => {}
        _ => drop(statements.rows(client, "DELETE FROM {schema}.signal WHERE job = $1", &id).await?),
    }
    Ok(Ok(true))
}

pub(super) async fn signals(client: &Client, statements: &Statements, receipts: Vec<u64>) -> Done<Vec<Told>> {
    let sql = "SELECT signal.id, job.receipt, signal.body FROM {schema}.signal JOIN {schema}.job ON job.id = signal.job
               WHERE job.receipt = ANY($1) ORDER BY signal.id";
    let receipts = signed(&receipts);
    let mut told = Vec::new();
    for row in statements.rows(client, sql, &[(&receipts, Type::INT8_ARRAY)]).await? {
        let (id, receipt, body): (i64, i64, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let signal = ours!(serde_json::from_str(body).map_err(|e| unreadable(id, e)));
        told.push(Told::new(id.cast_unsigned(), receipt.cast_unsigned(), signal));
    }
    Ok(Ok(told))
}

pub(super) async fn forget(client: &Client, statements: &Statements, signals: Vec<u64>) -> Done<()> {
    delete_signals(client, statements, &signals).await.map(Ok)
}

async fn delete_signals(client: &Client, statements: &Statements, signals: &[u64]) -> Result<(), Error> {
    if signals.is_empty() {
        return Ok(());
    }
    let (sql, signals) = ("DELETE FROM {schema}.signal WHERE id = ANY($1)", signed(signals));
    statements.rows(client, sql, &[(&signals, Type::INT8_ARRAY)]).await.map(drop)
}

fn signed(numbers: &[u64]) -> Vec<i64> {
    numbers.iter().map(|number| number.cast_signed()).collect()
}
