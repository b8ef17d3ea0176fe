//! The SQL.

use tokio_postgres::{Client, Error, Statement};

/// Takes the lease of a session and an agent, if it is free or has expired: gives its epoch. The clock is the server's, so
/// that those of the processes may differ.
const OPEN: &str = "
INSERT INTO lease (session, agent, holder, expires)
VALUES ($1, $2, $3, clock_timestamp() + $4::float8 * interval '1 second')
ON CONFLICT (session, agent) DO UPDATE
SET epoch = excluded.epoch, holder = excluded.holder, expires = excluded.expires
WHERE lease.expires <= clock_timestamp()
RETURNING epoch";

const RENEW: &str =
    "UPDATE lease SET expires = clock_timestamp() + $2::float8 * interval '1 second' WHERE epoch = ANY($1)";

const RELEASE: &str = "DELETE FROM lease WHERE epoch = $1 RETURNING epoch";

/// Keeps large strings, unless they are there. In order, so that two processes do not wait for each other.
const KEEP: &str = "
INSERT INTO blob (hash, content)
SELECT DISTINCT ON (hash) hash, content FROM unnest($2::bytea[], $3::text[]) AS b (hash, content)
WHERE EXISTS (SELECT FROM lease WHERE epoch = $1)
ORDER BY hash
ON CONFLICT (hash) DO NOTHING";

/// Appends to a session and gives the first sequence number; nothing if the lease is another's by now. The lock on the
/// lease's row keeps it from being taken over before this is committed.
const APPEND: &str = "
WITH held AS (
    SELECT FROM lease WHERE epoch = $1 FOR UPDATE
), advanced AS (
    INSERT INTO session (name, head, created, updated, runs, title, agents)
    SELECT $2, $3::int8, $12::int8, $13::int8, $14::int8, $15::bytea, $16::bytea[] FROM held
    ON CONFLICT (name) DO UPDATE SET
        head = session.head + excluded.head, updated = greatest(session.updated, excluded.updated),
        runs = session.runs + excluded.runs, title = coalesce(excluded.title, session.title),
        agents = session.agents || array(SELECT a FROM unnest(excluded.agents) a WHERE a <> ALL (session.agents))
    RETURNING id, head - $3::int8 AS before
), appended AS (
    INSERT INTO entry (session, seq, run, time, version, body, parts)
    SELECT id, before + n, run, time, version, body, parts
    FROM advanced, unnest($4::bytea[], $5::int8[], $6::int4[], $7::text[], $8::int4[])
        WITH ORDINALITY AS e (run, time, version, body, parts, n)
), referred AS (
    INSERT INTO part (session, seq, at, hash)
    SELECT id, before + n, at, hash
    FROM advanced, unnest($9::int8[], $10::int4[], $11::bytea[]) AS p (n, at, hash)
)
SELECT before + 1 FROM advanced";

/// Keeps everybody from taking a lease until the transaction ends.
pub(super) const HOLD_LEASES: &str = "LOCK TABLE lease IN SHARE ROW EXCLUSIVE MODE";

/// Deletes a session that nobody holds, with all that refers to it: gives how many there were; nothing if it is held.
const DELETE: &str = "
WITH held AS (
    SELECT FROM lease WHERE session = $1 AND expires > clock_timestamp()
), expired AS (
    DELETE FROM lease WHERE session = $1 AND NOT EXISTS (SELECT FROM held)
), deleted AS (
    DELETE FROM session WHERE name = $1 AND NOT EXISTS (SELECT FROM held) RETURNING id
)
SELECT (SELECT count(*) FROM deleted) WHERE NOT EXISTS (SELECT FROM held)";

/// One statement, so that an entry is read with its parts or not at all.
const READ: &str = "
SELECT page.seq, page.run, page.time, page.version, page.body, page.parts, p.places, p.hashes, p.contents
FROM (
    SELECT * FROM entry
    WHERE session = (SELECT id FROM session WHERE name = $1) AND seq > $2
    ORDER BY seq LIMIT $3
) AS page
LEFT JOIN LATERAL (
    SELECT array_agg(at ORDER BY at) AS places, array_agg(hash ORDER BY at) AS hashes,
           array_agg(content ORDER BY at) AS contents
    FROM part JOIN blob USING (hash)
    WHERE part.session = page.session AND part.seq = page.seq
) AS p ON page.parts > 0
ORDER BY page.seq";

const NEWEST: &str = "SELECT coalesce(max(seq), 0) FROM entry WHERE session = (SELECT id FROM session WHERE name = $1)";

const INFO: &str = "SELECT title, created, updated, head, runs, agents FROM session WHERE name = $1";

const SESSIONS: &str = "SELECT name FROM session ORDER BY name";

/// What a connection has prepared.
pub(super) struct Statements {
    pub(super) open: Statement,
    pub(super) renew: Statement,
    pub(super) release: Statement,
    pub(super) keep: Statement,
    pub(super) append: Statement,
    pub(super) delete: Statement,
    pub(super) read: Statement,
    pub(super) newest: Statement,
    pub(super) info: Statement,
    pub(super) sessions: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            open: client.prepare(OPEN).await?,
            renew: client.prepare(RENEW).await?,
            release: client.prepare(RELEASE).await?,
            keep: client.prepare(KEEP).await?,
            append: client.prepare(APPEND).await?,
            delete: client.prepare(DELETE).await?,
            read: client.prepare(READ).await?,
            newest: client.prepare(NEWEST).await?,
            info: client.prepare(INFO).await?,
            sessions: client.prepare(SESSIONS).await?,
        })
    }
}
