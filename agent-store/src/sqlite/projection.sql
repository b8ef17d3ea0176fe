-- Projection: summaries of sessions and runs, written with the entries. It can be rebuilt from them: a session whose `projected`
-- differs from its `head` is rebuilt before the projection is read.
ALTER TABLE session ADD COLUMN projected INTEGER NOT NULL DEFAULT 0;
-- Time of the newest beginning or end of a run, question or change of the title or metadata.
ALTER TABLE session ADD COLUMN active INTEGER NOT NULL DEFAULT 0;
-- The part of the name that lists select by: up to and including the first slash.
ALTER TABLE session ADD COLUMN space TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN metadata TEXT; -- as JSON
CREATE INDEX session_recent ON session (space, active DESC);

-- Digests of the pairs in `metadata`.
CREATE TABLE label (
    hash    BLOB NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (hash, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_of_session ON label (session);

-- Sequence number with which the run began; null if only its entries are known.
ALTER TABLE run ADD COLUMN seq INTEGER;
ALTER TABLE run ADD COLUMN space TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN is_root INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN user TEXT;
ALTER TABLE run ADD COLUMN status TEXT; -- null while it is running
ALTER TABLE run ADD COLUMN outcome TEXT; -- the status as JSON
ALTER TABLE run ADD COLUMN started INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN ended INTEGER;
ALTER TABLE run ADD COLUMN error TEXT;
ALTER TABLE run ADD COLUMN steps INTEGER NOT NULL DEFAULT 0; -- as of its end
ALTER TABLE run ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0; -- by a later root run of its agent
ALTER TABLE run ADD COLUMN is_edit INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN cached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN cache_write INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN cache_write_long INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN priced INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_recent ON run (space, started DESC) WHERE is_root = 1 AND is_edit = 0;
CREATE INDEX run_incomplete ON run (space, started DESC)
    WHERE is_root = 1 AND undone = 0 AND superseded = 0 AND ifnull(status, '') <> 'finished';
CREATE INDEX run_newest ON run (session, agent) WHERE is_root = 1 AND superseded = 0;

CREATE TABLE question (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    name    TEXT NOT NULL,
    digest  TEXT NOT NULL,
    body    TEXT NOT NULL -- as JSON
) STRICT;
CREATE INDEX question_of_run ON question (run);
CREATE INDEX question_by_digest ON question (session, digest);
CREATE TRIGGER session_summary_gone AFTER DELETE ON session
BEGIN
    DELETE FROM label WHERE session = OLD.id;
    DELETE FROM question WHERE session = OLD.id;
END;
