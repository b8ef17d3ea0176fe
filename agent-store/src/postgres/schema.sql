-- Names are any text, and PostgreSQL's text may not hold a NUL: they are kept as the bytes of their UTF-8, which also sort as
-- names do everywhere else.

-- One row for each session that has entries; `head` is its last sequence number.
CREATE TABLE session (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name BYTEA NOT NULL UNIQUE,
    head BIGINT NOT NULL
);

-- Rows are added and never changed. `body` is `{"kind": {..}}`; `parts` says how many large strings are kept apart from it.
CREATE TABLE entry (
    session BIGINT NOT NULL REFERENCES session ON DELETE CASCADE,
    seq     BIGINT NOT NULL,
    run     BYTEA NOT NULL,
    time    BIGINT NOT NULL, -- milliseconds since 1970, UTC
    version INTEGER NOT NULL,
    body    TEXT NOT NULL,
    parts   INTEGER NOT NULL,
    PRIMARY KEY (session, seq)
);

-- The content of a JSON string, by the SHA-256 of its bytes, once for all entries that have it.
CREATE TABLE blob (
    hash    BYTEA PRIMARY KEY,
    content TEXT NOT NULL
);

-- A blob belongs at the byte `at` of an entry's body, which has an empty string there.
CREATE TABLE part (
    session BIGINT NOT NULL,
    seq     BIGINT NOT NULL,
    at      INTEGER NOT NULL,
    hash    BYTEA NOT NULL REFERENCES blob,
    PRIMARY KEY (session, seq, at),
    FOREIGN KEY (session, seq) REFERENCES entry ON DELETE CASCADE
);
CREATE INDEX part_hash ON part (hash);

-- A blob goes with the last entry that has it.
CREATE FUNCTION part_gone() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM blob WHERE hash = OLD.hash AND NOT EXISTS (SELECT FROM part WHERE part.hash = OLD.hash);
    RETURN NULL;
END
$$;
CREATE TRIGGER part_gone AFTER DELETE ON part FOR EACH ROW EXECUTE FUNCTION part_gone();

-- Who may append. An epoch is never given twice, so a writer that lost its lease finds its row gone for ever.
CREATE SEQUENCE lease_epoch;
CREATE TABLE lease (
    epoch   BIGINT NOT NULL UNIQUE DEFAULT nextval('lease_epoch'),
    session BYTEA NOT NULL,
    agent   BYTEA NOT NULL,
    holder  TEXT NOT NULL,
    expires TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (session, agent)
);

-- For people: select * from history where session = 'alice';
CREATE VIEW history AS
SELECT convert_from(session.name, 'UTF8') AS session,
       entry.seq,
       to_timestamp(entry.time / 1000.0) AS time,
       convert_from(entry.run, 'UTF8') AS run,
       CASE WHEN entry.body LIKE '{"%' THEN split_part(entry.body, '"', 2) ELSE entry.body END AS kind,
       entry.body
FROM entry
JOIN session ON session.id = entry.session
ORDER BY entry.session, entry.seq;
