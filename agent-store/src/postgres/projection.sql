-- Projection: summaries of sessions and runs, written with the entries. It can be rebuilt from them: a session whose `projected`
-- differs from its `head` is rebuilt before the projection is read.
ALTER TABLE session
    ADD COLUMN projected BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN active    BIGINT NOT NULL DEFAULT 0, -- time of the newest beginning or end of a run, question or change of the title
    ADD COLUMN space     BYTEA NOT NULL DEFAULT '', -- digest of the name up to and including the first slash
    ADD COLUMN metadata  TEXT; -- as JSON
CREATE INDEX session_recent ON session (space, active DESC);

-- Digests of the pairs in `metadata`.
CREATE TABLE label (
    hash    BYTEA NOT NULL,
    session BIGINT NOT NULL REFERENCES session ON DELETE CASCADE,
    PRIMARY KEY (hash, session)
);
CREATE INDEX label_of_session ON label (session);

-- One row for each run that began; `key` is the digest of its id.
CREATE TABLE run (
    session    BIGINT NOT NULL REFERENCES session ON DELETE CASCADE,
    key        BYTEA NOT NULL,
    run        BYTEA NOT NULL,
    seq        BIGINT NOT NULL, -- with which it began
    space      BYTEA NOT NULL,
    agent      BYTEA NOT NULL,
    is_root    BOOLEAN NOT NULL,
    on_behalf  BYTEA, -- of this user
    started    BIGINT NOT NULL,
    status     TEXT, -- null while it is running
    outcome    TEXT, -- the status as JSON
    ended      BIGINT,
    error      BYTEA,
    steps      BIGINT NOT NULL DEFAULT 0, -- as of its end
    undone     BOOLEAN NOT NULL DEFAULT false,
    superseded BOOLEAN NOT NULL DEFAULT false, -- by a later root run of its agent
    is_edit    BOOLEAN NOT NULL DEFAULT false,
    calls BIGINT NOT NULL DEFAULT 0,
    input BIGINT NOT NULL DEFAULT 0,
    cached BIGINT NOT NULL DEFAULT 0,
    cache_write BIGINT NOT NULL DEFAULT 0,
    cache_write_long BIGINT NOT NULL DEFAULT 0,
    output BIGINT NOT NULL DEFAULT 0,
    reasoning BIGINT NOT NULL DEFAULT 0,
    cost BIGINT NOT NULL DEFAULT 0,
    priced BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (session, key)
);
CREATE INDEX run_recent ON run (space, started DESC) WHERE is_root AND NOT is_edit;
CREATE INDEX run_incomplete ON run (space, started DESC)
    WHERE is_root AND NOT undone AND NOT superseded AND coalesce(status, '') <> 'finished';
CREATE INDEX run_newest ON run (session, agent) WHERE is_root AND NOT superseded;

CREATE TABLE question (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL REFERENCES session ON DELETE CASCADE,
    key     BYTEA NOT NULL, -- of the run
    name    BYTEA NOT NULL,
    digest  BYTEA NOT NULL,
    body    TEXT NOT NULL -- as JSON
);
CREATE INDEX question_of_run ON question (session, key);
