-- What is known of a session without reading it. Times are milliseconds since 1970, UTC.
ALTER TABLE session ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN updated INTEGER NOT NULL DEFAULT 0;
-- Runs of agents at the top.
ALTER TABLE session ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN title TEXT;

-- The agents at the top, in the order in which they came.
CREATE TABLE agent (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    name    TEXT NOT NULL,
    UNIQUE (session, name)
) STRICT;
CREATE TRIGGER session_gone AFTER DELETE ON session
BEGIN DELETE FROM agent WHERE session = OLD.id; END;

-- What older releases wrote.
CREATE TEMP TABLE top AS
SELECT session, seq, body ->> '$.run_started.ids.agent_id' AS agent
FROM entry
WHERE kind = 'run_started' AND json_valid(body) AND body ->> '$.run_started.ids.parent_run_id' IS NULL;
UPDATE session SET
    created = coalesce((SELECT time FROM entry WHERE entry.session = session.id ORDER BY seq LIMIT 1), 0),
    updated = coalesce((SELECT max(time) FROM entry WHERE entry.session = session.id), 0),
    runs = (SELECT count(*) FROM top WHERE top.session = session.id),
    title = (
        SELECT body ->> '$.titled.title' FROM entry
        WHERE entry.session = session.id AND kind = 'titled' AND json_valid(body) ORDER BY seq DESC LIMIT 1
    );
INSERT INTO agent (session, name)
SELECT session, agent FROM top WHERE agent IS NOT NULL GROUP BY session, agent ORDER BY min(seq);
DROP TABLE top;
