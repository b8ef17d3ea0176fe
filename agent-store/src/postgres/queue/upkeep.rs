//! Statements of queue administration.

use std::time::Duration;

use agent_dispatch::{JobStatusKind, QueuedJob, RunAddress, Schedule, Wanted};
use tokio_postgres::{Client, Error, types::Type};

use super::{
    ours,
    row::unreadable,
    statements::{FORMAT, Statements},
};
use crate::{
    postgres::{connections::Done, query::Parameter},
    queue::{
        Times,
        record::{millis, written},
    },
};

pub(super) async fn jobs(client: &Client, statements: &Statements, wanted: Wanted) -> Done<Vec<QueuedJob>> {
    let condition = "WHERE ($1::text IS NULL OR standing = $1) AND ($2::bytea IS NULL OR tenant = $2)
                       AND ($3::bytea[] IS NULL OR agent = ANY($3)) AND ($4::bytea IS NULL OR session = $4)
                       AND ($5::bytea IS NULL OR run = $5)
                     ORDER BY id DESC LIMIT $6";
    let bytes = |name: &Option<String>| name.as_ref().map(|name| name.clone().into_bytes());
    let agents = wanted.agents.as_ref().map(|agents| agents.iter().map(String::as_bytes).collect::<Vec<_>>());
    let values: [(Parameter<'_>, Type); 6] = [
        (&wanted.standing.map(JobStatusKind::as_str), Type::TEXT),
        (&bytes(&wanted.tenant), Type::BYTEA),
        (&agents, Type::BYTEA_ARRAY),
        (&bytes(&wanted.session), Type::BYTEA),
        (&bytes(&wanted.run), Type::BYTEA),
        (&i64::try_from(wanted.most).unwrap_or(i64::MAX), Type::INT8),
    ];
    let stored = statements.jobs(client, condition, &values).await?;
    Ok(Ok(stored.iter().map(|stored| stored.shown().shown()).collect()))
}

pub(super) async fn retry(client: &Client, statements: &Statements, run: RunAddress) -> Done<bool> {
    let Some(stored) = statements.job_of(client, &run, "FOR UPDATE").await? else { return Ok(Ok(false)) };
    let (id, now) = (stored.id, stored.now);
    let mut record = ours!(stored.record());
    let stands = record.retry(now);
    if stands {
        statements.store(client, id, &record).await?;
        statements.notify(client).await?;
    }
    Ok(Ok(stands))
}

pub(super) async fn remove(client: &Client, statements: &Statements, run: RunAddress) -> Done<bool> {
    let Some(stored) = statements.job_of(client, &run, "FOR UPDATE").await? else { return Ok(Ok(false)) };
    let sql = "DELETE FROM {schema}.job WHERE id = $1 AND (standing <> 'running' OR expires <= $2) RETURNING id";
    let now = stored.now.cast_signed();
    let removed = statements.rows(client, sql, &[(&stored.id, Type::INT8), (&now, Type::INT8)]).await?;
    Ok(Ok(!removed.is_empty()))
}

/// Also deletes tenants without jobs.
pub(super) async fn purge(client: &Client, statements: &Statements, age: Duration) -> Done<u64> {
    let before = statements.now(client).await?.saturating_sub(millis(age)).cast_signed();
    let sql = "WITH gone AS (DELETE FROM {schema}.job WHERE standing = 'done' AND changed <= $1 RETURNING 1)
               SELECT count(*) FROM gone";
    let gone = statements.number(client, sql, &[(&before, Type::INT8)]).await?.unwrap_or_default();
    let sql = "DELETE FROM {schema}.tenant WHERE NOT EXISTS (SELECT FROM {schema}.job WHERE job.tenant = tenant.name)";
    statements.rows(client, sql, &[]).await?;
    Ok(Ok(gone.cast_unsigned()))
}

pub(super) async fn set_schedule(client: &Client, statements: &Statements, schedule: Schedule) -> Done<()> {
    let now = statements.now(client).await?;
    let due = ours!(Times::of(&schedule).and_then(|times| times.after(now))).cast_signed();
    let (name, body) = (schedule.name.as_bytes(), ours!(written(&schedule)));
    let due = due_before(client, statements, &schedule).await?.unwrap_or(due);
    let sql = "INSERT INTO {schema}.schedule (name, body, due, version) VALUES ($1, $2, $3, $4)
               ON CONFLICT (name) DO UPDATE SET body = excluded.body, due = excluded.due, version = excluded.version";
    let values: [(Parameter<'_>, Type); 4] =
        [(&name, Type::BYTEA), (&body, Type::TEXT), (&due, Type::INT8), (&FORMAT, Type::INT4)];
    statements.rows(client, sql, &values).await?;
    Ok(Ok(()))
}

/// Returns the due time of the schedule of this name, if its cron expression is unchanged; none if
/// it does not exist, cannot be decoded, or was disabled by an earlier release, which set a time
/// that never comes.
async fn due_before(client: &Client, statements: &Statements, schedule: &Schedule) -> Result<Option<i64>, Error> {
    let (sql, name) = ("SELECT body, due FROM {schema}.schedule WHERE name = $1 FOR UPDATE", schedule.name.as_bytes());
    let rows = statements.rows(client, sql, &[(&name, Type::BYTEA)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let before = serde_json::from_str::<Schedule>(row.try_get(0)?).ok().filter(|before| before.cron == schedule.cron);
    let due: Option<i64> = before.map(|_| row.try_get(1)).transpose()?;
    Ok(due.filter(|due| *due != i64::MAX))
}

pub(super) async fn remove_schedule(client: &Client, statements: &Statements, name: String) -> Done<bool> {
    let (sql, name) = ("DELETE FROM {schema}.schedule WHERE name = $1 RETURNING due", name.as_bytes());
    Ok(Ok(statements.number(client, sql, &[(&name, Type::BYTEA)]).await?.is_some()))
}

pub(super) async fn schedules(client: &Client, statements: &Statements) -> Done<Vec<(Schedule, u64)>> {
    let mut all = Vec::new();
    for row in statements.rows(client, "SELECT body, due, name FROM {schema}.schedule ORDER BY name", &[]).await? {
        let (body, due, name): (&str, i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let why = |e| unreadable(format!("schedule '{}': {e}", String::from_utf8_lossy(name)));
        let schedule = ours!(serde_json::from_str(body).map_err(why));
        all.push((schedule, due.cast_unsigned()));
    }
    Ok(Ok(all))
}
