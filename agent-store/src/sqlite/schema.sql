-- One row for each session that has entries; `head` is its last sequence number.
CREATE TABLE session (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    head INTEGER NOT NULL
) STRICT;

-- The ids of runs, so that an entry holds a small number and not 32 characters.
CREATE TABLE run (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    name    TEXT NOT NULL,
    UNIQUE (session, name)
) STRICT;

-- Rows are added and never changed. `body` is `{"kind": {..}}`.
CREATE TABLE entry (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    time    INTEGER NOT NULL, -- milliseconds since 1970, UTC
    version INTEGER NOT NULL,
    kind    TEXT AS (trim(substr(body, 1, instr(body || ':', ':') - 1), '{"')) VIRTUAL,
    body    TEXT NOT NULL,
    UNIQUE (session, seq)
) STRICT;

-- Who may append. An epoch is never given twice, so a writer that lost its lease finds its row gone for ever.
CREATE TABLE lease (
    epoch   INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    agent   TEXT NOT NULL,
    holder  TEXT NOT NULL,
    expires INTEGER NOT NULL, -- milliseconds since 1970, UTC
    UNIQUE (session, agent)
) STRICT;

-- For people: select * from history where session = 'alice';
CREATE VIEW history AS
SELECT session.name AS session,
       entry.seq,
       datetime(entry.time / 1000, 'unixepoch') AS time,
       run.name AS run,
       entry.kind,
       coalesce(entry.body -> entry.kind, entry.body) AS body
FROM entry
JOIN session ON session.id = entry.session
JOIN run ON run.id = entry.run
ORDER BY entry.session, entry.seq;
