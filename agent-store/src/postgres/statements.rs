//! SQL statements of the journal.

use futures::future::try_join_all;
use tokio_postgres::{Client, Error, types::Type};

use super::{connect::Location, project::Projecting, query::Query, summaries};

/// Takes the lease of a session and an agent, if it is free or has expired, and the session is not
/// being deleted. Returns the epoch. Uses the server's clock, since those of the processes may
/// differ.
const OPEN: &str = "
INSERT INTO {schema}.lease (session, agent, holder, expires)
SELECT $1, $2, $3, clock_timestamp() + $4::float8 * interval '1 second'
WHERE pg_try_advisory_xact_lock_shared(hashtextextended(encode($1, 'hex'), {lock_space}))
ON CONFLICT (session, agent) DO UPDATE
SET epoch = excluded.epoch, holder = excluded.holder, expires = excluded.expires
WHERE lease.expires <= clock_timestamp()
RETURNING epoch";

/// Renews leases, except those that a transaction has locked: an append holds the lock of its own.
/// Returns those that exist, and whether each was renewed.
const RENEW: &str = "
WITH free AS (
    SELECT epoch FROM {schema}.lease WHERE epoch = ANY($1) FOR UPDATE SKIP LOCKED
), renewed AS (
    UPDATE {schema}.lease SET expires = clock_timestamp() + $2::float8 * interval '1 second'
    WHERE epoch IN (SELECT epoch FROM free) RETURNING epoch
)
SELECT epoch, epoch IN (SELECT epoch FROM renewed) FROM {schema}.lease WHERE epoch = ANY($1)";

/// Renews leases, once their locks are released, and returns those that are still held.
const RENEW_LOCKED: &str = "
UPDATE {schema}.lease SET expires = clock_timestamp() + $2::float8 * interval '1 second' WHERE epoch = ANY($1)
RETURNING epoch, true";

const RELEASE: &str = "DELETE FROM {schema}.lease WHERE epoch = $1 RETURNING epoch";

/// Stores large strings that are not there yet. In a fixed order, so that two processes do not
/// deadlock.
const KEEP: &str = "
INSERT INTO {schema}.blob (hash, content)
SELECT DISTINCT ON (hash) hash, content FROM unnest($2::bytea[], $3::text[]) AS b (hash, content)
WHERE EXISTS (SELECT FROM {schema}.lease WHERE epoch = $1)
ORDER BY hash
ON CONFLICT (hash) DO NOTHING";

/// Appends to a session and returns the first sequence number; no row if the lease was lost. The
/// lock on the lease's row prevents a takeover before the commit.
const APPEND: &str = "
WITH held AS (
    SELECT FROM {schema}.lease WHERE epoch = $1 FOR UPDATE
), advanced AS (
    INSERT INTO {schema}.session (name, head, created, updated, runs, title, agents, anchor, projected, active, space)
    SELECT $2, $3::int8, $12::int8, $13::int8, $14::int8, $15::bytea, $16::bytea[], $17::int8, $3, $19::int8, $20::bytea
    FROM held
    ON CONFLICT (name) DO UPDATE SET
        head = session.head + excluded.head, updated = greatest(session.updated, excluded.updated),
        runs = session.runs + excluded.runs, title = coalesce(excluded.title, session.title),
        agents = session.agents || array(SELECT a FROM unnest(excluded.agents) a WHERE a <> ALL (session.agents)),
        anchor = coalesce(session.head + excluded.anchor, session.anchor),
        projected = session.projected + CASE WHEN session.projected = session.head THEN excluded.head ELSE 0 END,
        active = greatest(session.active, excluded.active)
    RETURNING id, head - $3::int8 AS before
), appended AS (
    INSERT INTO {schema}.entry (session, seq, run, time, version, body, parts)
    SELECT id, before + n, run, time, version, body, parts
    FROM advanced, unnest($4::bytea[], $5::int8[], $6::int4[], $7::text[], $8::int4[])
        WITH ORDINALITY AS e (run, time, version, body, parts, n)
), referred AS (
    INSERT INTO {schema}.part (session, seq, at, hash)
    SELECT id, before + n, at, hash
    FROM advanced, unnest($9::int8[], $10::int4[], $11::bytea[]) AS p (n, at, hash)
)
SELECT before + 1 FROM advanced, set_config('synchronous_commit', $18, true)";

/// Parameters of [`APPEND`].
const APPENDED: &[Type] = &[
    Type::INT8,        // lease epoch
    Type::BYTEA,       // session
    Type::INT8,        // number of entries
    Type::BYTEA_ARRAY, // per entry: run,
    Type::INT8_ARRAY,  // time,
    Type::INT4_ARRAY,  // version,
    Type::TEXT_ARRAY,  // body
    Type::INT4_ARRAY,  // and number of parts
    Type::INT8_ARRAY,  // per part: entry, counted from 1,
    Type::INT4_ARRAY,  // offset
    Type::BYTEA_ARRAY, // and hash
    Type::INT8,        // time of the first entry
    Type::INT8,        // newest time
    Type::INT8,        // number of runs that began
    Type::BYTEA,       // newest title
    Type::BYTEA_ARRAY, // agents of the runs
    Type::INT8,        // position of the newest snapshot, counted from 1
    Type::TEXT,        // whether the commit waits for the disk
    Type::INT8,        // newest time of activity
    Type::BYTEA,       // digest of the space
];

/// One statement, so that an entry is read consistently with its parts.
const READ: &str = "
SELECT page.seq, page.run, page.time, page.version, page.body, page.parts, p.places, p.hashes, p.contents
FROM (
    SELECT * FROM {schema}.entry
    WHERE session = (SELECT id FROM {schema}.session WHERE name = $1) AND seq > $2
    ORDER BY seq LIMIT $3
) AS page
LEFT JOIN LATERAL (
    SELECT array_agg(at ORDER BY at) AS places, array_agg(hash ORDER BY at) AS hashes,
           array_agg(content ORDER BY at) AS contents
    FROM {schema}.part JOIN {schema}.blob USING (hash)
    WHERE part.session = page.session AND part.seq = page.seq
) AS p ON page.parts > 0
ORDER BY page.seq";

const NEWEST: &str = "SELECT coalesce(max(seq), 0) FROM {schema}.entry WHERE session = (SELECT id FROM {schema}.session WHERE name = $1)";

const ANCHOR: &str = "SELECT anchor FROM {schema}.session WHERE name = $1";

/// The condition matches that of the index `run_started`.
const HAS_RUN: &str = r#"SELECT EXISTS (
    SELECT FROM {schema}.entry
    WHERE session = (SELECT id FROM {schema}.session WHERE name = $1)
      AND hashtextextended(encode(run, 'hex'), 0) = hashtextextended(encode($2, 'hex'), 0) AND run = $2 AND body LIKE '{"run_started"%'
)"#;

const INFO: &str =
    "SELECT title, created, updated, head, runs, agents, active, metadata FROM {schema}.session WHERE name = $1";

const SESSIONS: &str = "SELECT name FROM {schema}.session ORDER BY name";

const HEADS: &str = "SELECT name, head FROM {schema}.session WHERE name = ANY($1)";

const LIST: &str = "
SELECT name FROM {schema}.session WHERE name > $1 AND name >= $2 AND name < $3 ORDER BY name LIMIT $4";

/// Statements of a connection.
pub(super) struct Statements {
    pub(super) open: Query,
    pub(super) renew: Query,
    pub(super) renew_locked: Query,
    pub(super) release: Query,
    pub(super) keep: Query,
    pub(super) append: Query,
    pub(super) read: Query,
    pub(super) newest: Query,
    pub(super) anchor: Query,
    pub(super) has_run: Query,
    pub(super) info: Query,
    pub(super) sessions: Query,
    pub(super) list: Query,
    pub(super) heads: Query,
    pub(super) recent: Query,
    pub(super) runs: Query,
    pub(super) unprojected: Query,
    pub(super) project: Projecting,
}

impl Statements {
    pub(super) fn new(location: &Location) -> Self {
        let query = |text: &str, types: &'static [Type]| Query::new(location.sql(text), types);
        Self {
            open: query(OPEN, const { &[Type::BYTEA, Type::BYTEA, Type::TEXT, Type::FLOAT8] }),
            renew: query(RENEW, const { &[Type::INT8_ARRAY, Type::FLOAT8] }),
            renew_locked: query(RENEW_LOCKED, const { &[Type::INT8_ARRAY, Type::FLOAT8] }),
            release: query(RELEASE, const { &[Type::INT8] }),
            keep: query(KEEP, const { &[Type::INT8, Type::BYTEA_ARRAY, Type::TEXT_ARRAY] }),
            append: query(APPEND, APPENDED),
            read: query(READ, const { &[Type::BYTEA, Type::INT8, Type::INT8] }),
            newest: query(NEWEST, const { &[Type::BYTEA] }),
            anchor: query(ANCHOR, const { &[Type::BYTEA] }),
            has_run: query(HAS_RUN, const { &[Type::BYTEA, Type::BYTEA] }),
            info: query(INFO, const { &[Type::BYTEA] }),
            sessions: query(SESSIONS, &[]),
            heads: query(HEADS, const { &[Type::BYTEA_ARRAY] }),
            list: query(LIST, const { &[Type::BYTEA, Type::BYTEA, Type::BYTEA, Type::INT8] }),
            recent: query(&summaries::recent(), summaries::RECENT),
            runs: query(&summaries::runs(), summaries::RUNS),
            unprojected: query(summaries::UNPROJECTED, const { &[Type::INT8] }),
            project: Projecting::new(location),
        }
    }

    /// Prepares the write statements in one round trip.
    pub(super) async fn prepare(&mut self, client: &Client) -> Result<(), Error> {
        let Self { open, release, keep, append, project, .. } = self;
        let writing = [open, release, keep, append].into_iter().chain(project.all());
        try_join_all(writing.map(|query| query.prepare(client))).await.map(drop)
    }
}
