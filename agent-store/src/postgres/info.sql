-- What is known of a session without reading it. Times are milliseconds since 1970, UTC.
ALTER TABLE session
    ADD COLUMN created BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN updated BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN runs    BIGINT NOT NULL DEFAULT 0, -- of agents at the top
    ADD COLUMN title   BYTEA,                     -- any text, as names
    ADD COLUMN agents  BYTEA[] NOT NULL DEFAULT '{}'; -- at the top, in the order in which they came

-- What older releases wrote; a NUL in a name cannot be taken out of JSON here.
WITH top AS (
    SELECT session, seq, convert_to(body::json #>> '{run_started,ids,agent_id}', 'UTF8') AS agent
    FROM entry
    WHERE body LIKE '{"run_started"%' AND body NOT LIKE '%\\u0000%'
      AND body::json #>> '{run_started,ids,parent_run_id}' IS NULL
)
UPDATE session SET
    created = coalesce((SELECT time FROM entry WHERE entry.session = session.id ORDER BY seq LIMIT 1), 0),
    updated = coalesce((SELECT max(time) FROM entry WHERE entry.session = session.id), 0),
    runs = (SELECT count(*) FROM top WHERE top.session = session.id),
    title = (
        SELECT convert_to(body::json #>> '{titled,title}', 'UTF8') FROM entry
        WHERE entry.session = session.id AND body LIKE '{"titled"%' AND body NOT LIKE '%\\u0000%'
        ORDER BY seq DESC LIMIT 1
    ),
    agents = coalesce((
        SELECT array_agg(agent ORDER BY first)
        FROM (SELECT agent, min(seq) AS first FROM top WHERE top.session = session.id GROUP BY agent) AS one
    ), '{}');
