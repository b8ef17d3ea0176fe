//! The projection: how entries change it, and its rebuilding.

use std::sync::Arc;

use agent_core::Result;
use tokio_postgres::{Client, Error, IsolationLevel, types::Type};

use super::{
    connect::{Db, Location},
    error::store_error,
    query::{Parameter, Query},
    read::encoded,
};
use crate::{
    encode::Told,
    project::{Change, Over, Tracked, USAGE, label, short, space, usage_values},
};

/// The session `$2`, if the lease `$1` is held. Rebuilding needs no lease, which is null then.
const HERE: &str = "
WITH here AS (
    SELECT id, head FROM {schema}.session
    WHERE name = $2 AND ($1::int8 IS NULL OR EXISTS (SELECT FROM {schema}.lease WHERE epoch = $1))
)";

/// `$3` is the key of the run, `$4` its id, `$5` its agent, `$6` whether it is a root run, `$7` its
/// user, `$8` its start, `$9` the number of later entries, and `$10` the digest of the space.
const BEGIN: &str = "{here}, others AS (
    UPDATE {schema}.run SET superseded = true FROM here
    WHERE run.session = here.id AND $6 AND run.agent = $5 AND run.is_root AND NOT run.superseded AND run.key <> $3
), asked AS (
    DELETE FROM {schema}.question USING here WHERE question.session = here.id AND question.key = $3
)
INSERT INTO {schema}.run (session, key, run, seq, space, agent, is_root, on_behalf, started)
SELECT id, $3, $4, head - $9::int8, $10, $5, $6, $7, $8 FROM here
ON CONFLICT (session, key) DO UPDATE SET
    seq = excluded.seq, space = excluded.space, agent = excluded.agent, is_root = excluded.is_root,
    on_behalf = excluded.on_behalf, started = excluded.started, status = NULL, outcome = NULL, ended = NULL, error = NULL,
    steps = 0, undone = false, superseded = false, is_edit = false, {no_usage}";

const RESUME: &str = "{here}
UPDATE {schema}.run SET status = NULL, outcome = NULL, ended = NULL, error = NULL, is_edit = false
FROM here WHERE run.session = here.id AND run.key = $3";

const END: &str = "{here}
UPDATE {schema}.run SET status = $4, outcome = $5, is_edit = $6, ended = $7, error = $8,
    steps = coalesce($9, steps), {usage}
FROM here WHERE run.session = here.id AND run.key = $3";

const ASK: &str = "{here}, before AS (
    DELETE FROM {schema}.question USING here WHERE question.session = here.id AND question.key = $3 AND question.name = $4
)
INSERT INTO {schema}.question (session, key, name, digest, body) SELECT id, $3, $4, $5, $6 FROM here";

/// `$4` is a name or null, and `$5` the beginning of names or null.
const OVER: &str = "{here}, over AS (
    SELECT question.id, question.digest FROM {schema}.question JOIN here ON question.session = here.id
    WHERE question.key = $3 AND ($4::bytea IS NULL OR question.name = $4)
      AND ($5::bytea IS NULL OR substring(question.name FROM 1 FOR length($5)) = $5)
)
DELETE FROM {schema}.question USING here
WHERE question.session = here.id
  AND (question.id IN (SELECT id FROM over) OR question.digest IN (SELECT digest FROM over WHERE digest <> ''))";

const UNDO: &str = "{here}, first AS (
    SELECT run.session, run.seq, run.agent FROM {schema}.run JOIN here ON run.session = here.id WHERE run.key = $3
)
UPDATE {schema}.run SET undone = true FROM first
WHERE run.session = first.session AND run.agent = first.agent AND run.seq >= first.seq";

const LABEL: &str = "{here}, described AS (
    UPDATE {schema}.session SET metadata = $3 FROM here WHERE session.id = here.id
), gone AS (
    DELETE FROM {schema}.label USING here WHERE label.session = here.id AND label.hash <> ALL($4)
)
INSERT INTO {schema}.label (hash, session) SELECT DISTINCT hash, id FROM here, unnest($4::bytea[]) AS l (hash)
ON CONFLICT DO NOTHING";

/// Statements that change the projection.
pub(super) struct Projecting {
    begin: Query,
    resume: Query,
    end: Query,
    ask: Query,
    over: Query,
    undo: Query,
    label: Query,
}

impl Projecting {
    pub(super) fn new(location: &Location) -> Self {
        let no_usage = USAGE.map(|column| format!("{column} = 0")).join(", ");
        let usage = (10..).zip(USAGE).map(|(n, column)| format!("{column} = ${n}")).collect::<Vec<_>>().join(", ");
        let query = |text: &str, types: &'static [Type]| {
            let text = text.replace("{here}", HERE).replace("{no_usage}", &no_usage).replace("{usage}", &usage);
            Query::new(location.sql(&text), types)
        };
        const I: Type = Type::INT8;
        const B: Type = Type::BYTEA;
        const T: Type = Type::TEXT;
        Self {
            begin: query(BEGIN, const { &[I, B, B, B, B, Type::BOOL, B, I, I, B] }),
            resume: query(RESUME, const { &[I, B, B] }),
            end: query(END, const { &[I, B, B, T, T, Type::BOOL, I, B, I, I, I, I, I, I, I, I, I, I] }),
            ask: query(ASK, const { &[I, B, B, B, B, T] }),
            over: query(OVER, const { &[I, B, B, B, B] }),
            undo: query(UNDO, const { &[I, B, B] }),
            label: query(LABEL, const { &[I, B, T, Type::BYTEA_ARRAY] }),
        }
    }

    /// Returns all statements, to prepare them.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Query> {
        let Self { begin, resume, end, ask, over, undo, label } = self;
        [begin, resume, end, ask, over, undo, label].into_iter()
    }

    /// Applies a change, by one statement, which is sent when the future is first polled.
    pub(super) async fn apply(&self, client: &Client, at: &At<'_>, change: &Change) -> Result<(), Error> {
        let (session, key) = (at.session.as_bytes(), &short(at.run)[..]);
        let (epoch, run, time) = (at.epoch, at.run.as_bytes(), at.time.cast_signed());
        let send = async |query: &Query, more: &[Parameter<'_>]| {
            let values: Vec<Parameter<'_>> =
                [&epoch as Parameter<'_>, &session].into_iter().chain(more.iter().copied()).collect();
            query.rows(client, &values).await.map(drop)
        };
        match change {
            Change::Began { agent, is_root, user } => {
                let (agent, user) = (agent.as_bytes(), user.as_deref().map(str::as_bytes));
                let space = &short(space(at.session))[..];
                send(&self.begin, &[&key, &run, &agent, is_root, &user, &time, &at.later, &space]).await
            }
            Change::Resumed => send(&self.resume, &[&key]).await,
            Change::Ended { status, outcome, is_edit, usage, steps, error } => {
                let (error, usage) = (error.as_deref().map(str::as_bytes), usage_values(usage));
                let values: [Parameter<'_>; 7] = [&key, status, outcome, is_edit, &time, &error, steps];
                let usage = usage.iter().map(|value| value as Parameter<'_>);
                send(&self.end, &values.into_iter().chain(usage).collect::<Vec<_>>()).await
            }
            Change::Asked { id, digest, body } => {
                send(&self.ask, &[&key, &id.as_bytes(), &digest.as_bytes(), body]).await
            }
            Change::Over(over) => {
                let (one, within) = match over {
                    Over::All => (None, None),
                    Over::One(id) => (Some(id.as_bytes()), None),
                    Over::Within(place) => (None, Some(place.as_bytes())),
                };
                send(&self.over, &[&key, &one, &within]).await
            }
            Change::Undone { run } => send(&self.undo, &[&&short(run)[..]]).await,
            Change::Labelled(labels) => {
                let hashes: Vec<_> = labels.iter().map(|pair| label(pair).to_vec()).collect();
                let text = serde_json::to_string(labels).expect("texts serialize to JSON");
                send(&self.label, &[&text, &hashes]).await
            }
        }
    }
}

/// Position of an entry that changes the projection.
pub(super) struct At<'a> {
    /// Lease of the writer; none while the projection is rebuilt.
    pub(super) epoch: Option<i64>,
    pub(super) session: &'a str,
    pub(super) run: &'a str,
    pub(super) time: u64,
    /// Number of later entries of the session.
    pub(super) later: i64,
}

/// Rebuilds the projection of a session from its entries, if it still exists, over a connection of
/// its own. Appends to the session wait meanwhile. An entry that cannot be read is skipped.
pub(super) async fn rebuild(location: &Location, sessions: &[String]) -> Result<()> {
    let mut db = location.connect().await?;
    for session in sessions {
        rebuild_one(location, &mut db, session).await.map_err(|e| store_error(&e))?;
    }
    Ok(())
}

async fn rebuild_one(location: &Location, db: &mut Db, name: &str) -> Result<(), Error> {
    const PAGE: i64 = 500;
    let Db { client, statements } = db;
    let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
    let (client, session, space) = (transaction.client(), name.as_bytes(), &short(space(name))[..]);
    let lock = "SELECT id, head FROM {schema}.session WHERE name = $1 FOR UPDATE";
    let found = client.query_typed(&location.sql(lock), &[(&session, Type::BYTEA)]).await?;
    let Some(row) = found.first() else { return Ok(()) };
    let (id, head): (i64, i64) = (row.get(0), row.get(1));
    for table in ["question", "run", "label"] {
        let sql = format!("DELETE FROM {{schema}}.{table} WHERE session = $1");
        client.query_typed(&location.sql(&sql), &[(&id, Type::INT8)]).await?;
    }
    let (mut tracked, mut active, mut after) = (Tracked::default(), 0, 0_i64);
    let mut metadata_is_set = false;
    loop {
        let rows = statements.read.rows(client, &[&session, &after, &PAGE]).await?;
        let mut last_run: Option<Arc<str>> = None;
        for row in &rows {
            after = row.get(0);
            let entry = encoded(row, &mut last_run).and_then(|(seq, entry)| entry.decode(seq));
            let Ok(entry) = entry.inspect_err(|error| skipped(name, error)) else { continue };
            let changes = Change::of(&entry.run, &entry.body, &mut tracked);
            if changes.iter().any(Change::is_activity) || matches!(Told::of(&entry.body), Some(Told::Title(_))) {
                active = active.max(entry.time);
            }
            metadata_is_set |= changes.iter().any(|change| matches!(change, Change::Labelled(_)));
            let at = At { epoch: None, session: name, run: &entry.run, time: entry.time, later: head - after };
            for change in &changes {
                statements.project.apply(client, &at, change).await?;
            }
        }
        if rows.len() < PAGE as usize {
            break;
        }
    }
    let sql = "UPDATE {schema}.session SET projected = head, active = $2, space = $3,
                   metadata = CASE WHEN $4 THEN metadata END WHERE id = $1";
    let active = active.cast_signed();
    let values: [(Parameter<'_>, Type); 4] =
        [(&id, Type::INT8), (&active, Type::INT8), (&space, Type::BYTEA), (&metadata_is_set, Type::BOOL)];
    client.query_typed(&location.sql(sql), &values).await?;
    transaction.commit().await
}

fn skipped(session: &str, error: &agent_core::Error) {
    tracing::warn!(session, %error, "an entry cannot be read, so that the summary of its session may be incomplete");
}
