//! Reading the projection.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Question, Result,
    journal::{RunFilter, RunQuery, RunSummary, SessionInfo, SessionQuery, SessionSummary},
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

use super::{
    read::{info, name, text},
    readers::{Parameters, Readers},
};
use crate::{
    prefix::above,
    project::{Prefix, USAGE, label, short, usage_of},
};

/// Runs that are not finished and can be resumed: the condition of the index `run_incomplete`.
const INCOMPLETE: &str =
    "(run.is_root AND NOT run.undone AND NOT run.superseded AND coalesce(run.status, '') <> 'finished')";

/// Runs that may wait for answers.
const MAY_WAIT: &str = "(run.status IS NOT NULL AND run.status <> 'cancelled')";

pub(super) const UNPROJECTED: &str = "SELECT name FROM {schema}.session WHERE projected <> head LIMIT $1";

/// Parameters of [`recent`].
pub(super) const RECENT: &[Type] = &[
    Type::BYTEA,       // digest of the space, or null
    Type::BYTEA,       // first name, or null
    Type::BYTEA,       // name above all, or null
    Type::BYTEA_ARRAY, // agents, or null
    Type::BYTEA,       // user, or null
    Type::BYTEA_ARRAY, // digests of metadata
    Type::INT8,        // time of activity of the last session before, or null,
    Type::BYTEA,       // and its name
    Type::INT8,        // maximum number
];

/// Statement for sessions, most recently active first.
pub(super) fn recent() -> String {
    let sums = USAGE.map(|column| format!("coalesce(sum({column}), 0)::int8 AS {column}")).join(", ");
    let usage = USAGE.map(|column| format!("used.{column}")).join(", ");
    format!(
        "SELECT page.title, page.created, page.updated, page.head, page.runs, page.agents, page.active, page.metadata,
                page.name, asked.questions, {usage}
         FROM (
             SELECT * FROM {{schema}}.session
             WHERE ($1::bytea IS NULL OR space = $1)
               AND ($2::bytea IS NULL OR name >= $2) AND ($3::bytea IS NULL OR name < $3)
               AND ($4::bytea[] IS NULL OR agents && $4)
               AND ($5::bytea IS NULL OR EXISTS (
                   SELECT FROM {{schema}}.run
                   WHERE run.session = session.id AND run.is_root AND NOT run.is_edit AND run.on_behalf = $5))
               AND (cardinality($6::bytea[]) = 0 OR id IN (
                   SELECT session FROM {{schema}}.label WHERE hash = ANY($6)
                   GROUP BY session HAVING count(*) = cardinality($6)))
               AND ($7::int8 IS NULL OR (active, name) < ($7, $8))
             ORDER BY active DESC, name DESC LIMIT $9
         ) AS page
         CROSS JOIN LATERAL (SELECT {sums} FROM {{schema}}.run WHERE run.session = page.id) AS used
         CROSS JOIN LATERAL (
             SELECT count(*) AS questions FROM {{schema}}.question JOIN {{schema}}.run USING (session, key)
             WHERE question.session = page.id AND NOT run.is_edit AND {INCOMPLETE} AND {MAY_WAIT}
         ) AS asked
         ORDER BY page.active DESC, page.name DESC"
    )
}

/// Parameters of [`runs`].
pub(super) const RUNS: &[Type] = &[
    Type::BYTEA,       // digest of the space, or null
    Type::BYTEA,       // first name of a session, or null
    Type::BYTEA,       // name above all, or null
    Type::BYTEA,       // name of the session, or null
    Type::BYTEA_ARRAY, // agents, or null
    Type::BYTEA,       // user, or null
    Type::BOOL,        // only incomplete ones
    Type::BOOL,        // only waiting ones
    Type::INT8,        // start of the last run before, or null,
    Type::BYTEA,       // its session
    Type::BYTEA,       // and its id
    Type::INT8,        // maximum number
];

/// Statement for root runs, newest first.
pub(super) fn runs() -> String {
    let usage = USAGE.map(|column| format!("run.{column}")).join(", ");
    format!(
        "SELECT session.name, run.run, run.agent, run.started, run.on_behalf, run.outcome, run.ended, run.error, run.undone,
                {INCOMPLETE}, asked.bodies, CASE WHEN run.status IS NULL THEN 0 ELSE run.steps END, {usage}
         FROM {{schema}}.run JOIN {{schema}}.session ON session.id = run.session
         CROSS JOIN LATERAL (
             SELECT array_agg(body ORDER BY question.id) AS bodies FROM {{schema}}.question
             WHERE question.session = run.session AND question.key = run.key AND {INCOMPLETE} AND {MAY_WAIT}
         ) AS asked
         WHERE run.is_root AND NOT run.is_edit AND ($1::bytea IS NULL OR run.space = $1)
           AND ($2::bytea IS NULL OR session.name >= $2) AND ($3::bytea IS NULL OR session.name < $3)
           AND ($4::bytea IS NULL OR run.session = (SELECT id FROM {{schema}}.session WHERE name = $4))
           AND ($5::bytea[] IS NULL OR run.agent = ANY($5)) AND ($6::bytea IS NULL OR run.on_behalf = $6)
           AND (NOT $7 OR {INCOMPLETE})
           AND (NOT $8 OR ({MAY_WAIT} AND EXISTS (
               SELECT FROM {{schema}}.question WHERE question.session = run.session AND question.key = run.key)))
           AND ($9::int8 IS NULL OR (run.started, session.name, run.run) < ($9, $10, $11))
         ORDER BY run.started DESC, session.name DESC, run.run DESC LIMIT $12"
    )
}

type Value = Box<dyn ToSql + Send + Sync>;

fn bytes(text: Option<&String>) -> Value {
    Box::new(text.map(|text| text.as_bytes().to_vec()))
}

fn list(names: Option<&Vec<String>>) -> Value {
    Box::new(names.map(|names| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>()))
}

fn limit(most: usize) -> Value {
    Box::new(i64::try_from(most).unwrap_or(i64::MAX))
}

/// Returns the digest of the space, and the range of names.
fn prefixed(prefix: &str) -> [Value; 3] {
    let none = || -> Value { Box::new(None::<Vec<u8>>) };
    match Prefix::of(prefix) {
        Prefix::All => [none(), none(), none()],
        Prefix::Space(space) => [Box::new(short(space).to_vec()), none(), none()],
        Prefix::Other(prefix) => [none(), Box::new(prefix.as_bytes().to_vec()), Box::new(above(prefix))],
    }
}

impl Readers {
    /// Returns the names of at most `most` sessions whose projection has to be rebuilt.
    pub(super) async fn unprojected(&self, most: i64) -> Result<Vec<String>> {
        let rows = self.rows(|s| &s.unprojected, vec![Box::new(most)]).await?;
        rows.iter().map(|row| name(row, 0).map(ToOwned::to_owned)).collect()
    }

    pub(super) async fn recent(&self, query: &SessionQuery) -> Result<Vec<SessionSummary>> {
        let before = query.before.as_ref();
        let mut values: Parameters = prefixed(&query.prefix).into_iter().collect();
        values.extend([
            list(query.agents.as_ref()),
            bytes(query.user.as_ref()),
            Box::new(query.metadata.iter().map(|pair| label(pair).to_vec()).collect::<Vec<_>>()),
            Box::new(before.map(|(active, _)| active.cast_signed())),
            bytes(before.map(|(_, session)| session)),
            limit(query.limit),
        ]);
        let rows = self.rows(|s| &s.recent, values).await?;
        let read = |row: &Row| {
            let mut summary = SessionSummary::new(name(row, 8)?, info(row)?);
            summary.questions = row.get::<_, i64>(9).cast_unsigned();
            summary.usage = usage_of(|at| Ok::<_, Error>(row.get(10 + at)))?;
            Ok(summary)
        };
        rows.iter().map(read).collect()
    }

    pub(super) async fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        let (before, is_waiting) = (query.before.as_ref(), query.state == RunFilter::Waiting);
        let mut values: Parameters = prefixed(&query.prefix).into_iter().collect();
        values.extend([
            bytes(query.session.as_ref()),
            list(query.agents.as_ref()),
            bytes(query.user.as_ref()),
            Box::new(is_waiting || query.state == RunFilter::Incomplete) as Value,
            Box::new(is_waiting),
            Box::new(before.map(|(started, ..)| started.cast_signed())),
            bytes(before.map(|(_, session, _)| session)),
            bytes(before.map(|(.., run)| run)),
            limit(query.limit),
        ]);
        self.rows(|s| &s.runs, values).await?.iter().map(run).collect()
    }
}

/// Decodes a run.
fn run(row: &Row) -> Result<RunSummary> {
    let started = row.get::<_, i64>(3).cast_unsigned();
    let mut run = RunSummary::new(name(row, 0)?, name(row, 1)?, name(row, 2)?, started);
    let optional = |column| row.get::<_, Option<&[u8]>>(column).map(text).transpose();
    run.user = optional(4)?.map(Arc::from);
    run.ended = row.get::<_, Option<i64>>(6).map(i64::cast_unsigned);
    (run.error, run.undone, run.incomplete) = (optional(7)?, row.get(8), row.get(9));
    run.usage = usage_of(|at| Ok::<_, Error>(row.get(12 + at)))?;
    run.steps = u32::try_from(row.get::<_, i64>(11)).unwrap_or(u32::MAX);
    let damaged =
        |e| Error::new(ErrorKind::Store, "a summary cannot be decoded: rebuild the projection").with_source(e);
    let outcome = row.get::<_, Option<&str>>(5).map(serde_json::from_str).transpose();
    run.status = outcome.map_err(damaged)?;
    let bodies = row.get::<_, Option<Vec<&str>>>(10).unwrap_or_default();
    let questions = bodies.into_iter().map(serde_json::from_str::<Question>).collect::<Result<_, _>>();
    run.questions = questions.map_err(damaged)?;
    Ok(run)
}

/// Decodes the metadata of a session in JSON.
pub(super) fn describe(info: &mut SessionInfo, metadata: Option<&str>) {
    info.metadata = metadata.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
}
