//! Statements of workers.

use std::time::Duration;

use agent_core::Result;
use agent_dispatch::{Claim, Claimed, JobStatusKind, Outcome, Schedule, Told};
use tokio_postgres::{Client, Error, error::SqlState, types::Type};

use super::{
    row::Stored,
    sending,
    statements::{Candidates, FORMAT, Statements, signal},
};
use crate::{
    postgres::{connections::Done, query::Parameter},
    queue::{
        QueueLimits, Times, in_words,
        record::{Record, cancels, millis},
    },
};

/// Jobs with expired leases and suspended jobs whose wait is over, except those locked by others.
const OVERDUE: &str = "WHERE (standing = 'running' AND expires <= $1 OR standing = 'at_rest' AND ready_at <= $1)
    AND version <= $3 AND id <> ALL($4) ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED";
/// Maximum number of jobs that a claim wakes or skips; the rest is left to the next claim.
const AT_ONCE: i64 = 100;

const DUE: &str = "SELECT body, due, name FROM {schema}.schedule WHERE due <= $1 AND version <= $2
    ORDER BY name FOR UPDATE SKIP LOCKED";

/// Waits for locked rows, or skips them.
const RENEW: &str = "UPDATE {schema}.job SET expires = (extract(epoch FROM clock_timestamp()) * 1000)::int8 + $2
    WHERE id IN (SELECT id FROM {schema}.job WHERE receipt = ANY($1) ORDER BY id FOR UPDATE {others}) RETURNING receipt";

/// Returns the maximum lock wait of a claim, and the time after which the server ends a silent
/// claim.
fn patience(lease: Duration) -> Duration {
    (lease / 3).clamp(Duration::from_secs(1), Duration::from_secs(10))
}

pub(super) async fn claim(
    client: &Client,
    statements: &Statements,
    by: Claim,
    limits: QueueLimits,
) -> Done<Option<Claimed>> {
    let wanted = candidates(&by, &limits);
    // Idle workers take no locks.
    if !statements.may_have_jobs(client, &wanted.agents.0).await? {
        return Ok(Ok(None));
    }
    statements.lock_claims(client, patience(by.lease)).await?;
    let now = statements.now(client).await?;
    let (at, skipped) = (now.cast_signed(), statements.skipped_jobs());
    let values: [(Parameter<'_>, Type); 4] =
        [(&at, Type::INT8), (&AT_ONCE, Type::INT8), (&FORMAT, Type::INT4), (&skipped, Type::INT8_ARRAY)];
    for stored in statements.jobs(client, OVERDUE, &values).await? {
        if let Some((id, mut record)) = readable(statements, stored) {
            record.wake(now);
            statements.store(client, id, &record).await?;
        }
    }
    for _ in 0..AT_ONCE {
        let Some((id, tenant)) = statements.candidate(client, &wanted, now).await? else { break };
        let jobs = statements.jobs(client, "WHERE id = $1 FOR UPDATE", &[(&id, Type::INT8)]).await?;
        let Some(stored) = jobs.into_iter().next() else { break };
        let now = stored.now;
        let Some((id, mut record)) = readable(statements, stored) else { continue };
        statements.take_turn(client, &tenant).await?;
        let receipt = statements.number(client, "SELECT nextval('{schema}.receipt')", &[]).await?.unwrap_or_default();
        let claimed = record.claim(receipt.cast_unsigned(), &by, now);
        statements.store(client, id, &record).await?;
        return Ok(Ok(Some(claimed)));
    }
    Ok(Ok(None))
}

/// Decodes the job. A job that cannot be decoded is left unchanged to workers that can, so that a
/// rolling release loses nothing.
fn readable(statements: &Statements, stored: Stored) -> Option<(i64, Record)> {
    let id = stored.id;
    stored.record().inspect_err(|error| statements.skip_job(id, error)).ok().map(|record| (id, record))
}

/// Enqueues the jobs of schedules that are due. A job that the limits reject stays due.
pub(super) async fn fire(client: &Client, statements: &Statements, limits: QueueLimits) -> Done<()> {
    let now = statements.now(client).await?;
    let mut fires = false;
    for row in statements.rows(client, DUE, &[(&now.cast_signed(), Type::INT8), (&FORMAT, Type::INT4)]).await? {
        let (body, due, name): (&str, i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let schedule = match serde_json::from_str::<Schedule>(body) {
            Ok(schedule) => schedule,
            // It stays due, for a worker that can decode it.
            Err(error) => {
                statements.skip_schedule(name, &error);
                continue;
            }
        };
        let job = schedule.job_at(&in_words(due.cast_unsigned()));
        if sending::insert(client, statements, &job, &limits).await?.is_err() {
            continue;
        }
        fires = true;
        let next = Times::of(&schedule).and_then(|times| times.after(now)).ok().map(u64::cast_signed);
        match next {
            Some(next) => {
                let sql = "UPDATE {schema}.schedule SET due = $2 WHERE name = $1";
                statements.rows(client, sql, &[(&name, Type::BYTEA), (&next, Type::INT8)]).await?;
            }
            // The schedule is never due again.
            None => {
                let sql = "DELETE FROM {schema}.schedule WHERE name = $1";
                statements.rows(client, sql, &[(&name, Type::BYTEA)]).await?;
            }
        }
    }
    if fires {
        statements.notify(client).await?;
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
    let (receipts, millis) = (signed(&receipts), millis(lease).cast_signed());
    let renew = async |others: &str| {
        let sql = RENEW.replace("{others}", others);
        statements.rows(client, &sql, &[(&receipts, Type::INT8_ARRAY), (&millis, Type::INT8)]).await
    };
    // Half of the renewal interval.
    statements.wait_for_others(client, lease / 6).await?;
    let rows = match renew("").await {
        // A silent client has locked one job: only that lease is lost.
        Err(e) if e.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            statements.undo(client).await?;
            renew("SKIP LOCKED").await?
        }
        renewed => renewed?,
    };
    Ok(Ok(rows.iter().map(|row| Ok(row.try_get::<_, i64>(0)?.cast_unsigned())).collect::<Result<_, Error>>()?))
}

pub(super) async fn release(
    client: &Client,
    statements: &Statements,
    receipt: u64,
    outcome: Outcome,
    heard: Vec<u64>,
    stands: bool,
) -> Done<bool> {
    let receipt = receipt.cast_signed();
    let held = statements.jobs(client, "WHERE receipt = $1 FOR UPDATE", &[(&receipt, Type::INT8)]).await?;
    let Some(stored) = held.into_iter().next() else { return Ok(Ok(false)) };
    delete_signals(client, statements, &heard).await?;
    let (id, now) = (stored.id, stored.now);
    let unheard = statements.unheard(client, id).await?;
    let Some((id, mut record)) = readable(statements, stored) else {
        statements.hand_back(client, id, now).await?;
        statements.notify(client).await?;
        return Ok(Ok(true));
    };
    record.release(outcome, stands, cancels(unheard.iter().map(|(_, signal)| signal)), now);
    statements.store(client, id, &record).await?;
    let useless = unheard.iter().filter(|(_, signal)| !record.keeps(signal)).map(|(number, _)| number.cast_unsigned());
    delete_signals(client, statements, &useless.collect::<Vec<_>>()).await?;
    if record.standing == JobStatusKind::Queued {
        statements.notify(client).await?;
    }
    Ok(Ok(true))
}

pub(super) async fn signals(client: &Client, statements: &Statements, receipts: Vec<u64>) -> Done<Vec<Told>> {
    let sql = "SELECT signal.id, job.receipt, signal.body FROM {schema}.signal JOIN {schema}.job ON job.id = signal.job
               WHERE job.receipt = ANY($1) ORDER BY signal.id";
    let receipts = signed(&receipts);
    let mut told = Vec::new();
    for row in statements.rows(client, sql, &[(&receipts, Type::INT8_ARRAY)]).await? {
        let (id, receipt): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let signal = signal(id, row.try_get(2)?);
        told.extend(signal.map(|signal| Told::new(id.cast_unsigned(), receipt.cast_unsigned(), signal)));
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
