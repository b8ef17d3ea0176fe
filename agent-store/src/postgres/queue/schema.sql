-- Names are any text, and PostgreSQL's text may not hold a NUL: they are kept as the bytes of their UTF-8. Times are milliseconds since
-- 1970, UTC, by this server's clock.

-- Those whose jobs take turns.
CREATE TABLE tenant (
    name BYTEA PRIMARY KEY,
    turn BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX tenant_turn ON tenant (turn, name);
CREATE SEQUENCE turn;

-- One row for each run; `id` is the order of arrival. A receipt is never given twice, so a worker that lost its lease changes nothing.
CREATE TABLE job (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent    BYTEA NOT NULL,
    session  BYTEA NOT NULL,
    run      BYTEA NOT NULL,
    tenant   BYTEA NOT NULL REFERENCES tenant,
    priority SMALLINT NOT NULL,
    body     TEXT NOT NULL, -- the job, as JSON
    standing TEXT NOT NULL, -- queued, running, at_rest, dead or done
    ready_at BIGINT NOT NULL,
    failures INTEGER NOT NULL,
    begun    BOOLEAN NOT NULL,
    receipt  BIGINT UNIQUE,
    worker   TEXT NOT NULL,
    expires  BIGINT NOT NULL,
    answers  TEXT, -- that came since a worker had it, as JSON
    taken    TEXT, -- that its worker has, as JSON
    error    TEXT,
    created  BIGINT NOT NULL,
    changed  BIGINT NOT NULL,
    UNIQUE (agent, session, run)
);
CREATE SEQUENCE receipt;
CREATE INDEX job_next ON job (tenant, priority DESC, id) WHERE standing = 'queued';
CREATE INDEX job_running ON job (expires) WHERE standing = 'running';
CREATE INDEX job_at_rest ON job (ready_at) WHERE standing = 'at_rest';
CREATE INDEX job_of_session ON job (agent, session, id) WHERE standing IN ('queued', 'running');
CREATE INDEX job_of_tenant ON job (tenant);
CREATE INDEX job_done ON job (changed) WHERE standing = 'done';

-- What runs are told.
CREATE TABLE signal (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job  BIGINT NOT NULL REFERENCES job ON DELETE CASCADE,
    body TEXT NOT NULL
);
CREATE INDEX signal_of_job ON signal (job);

CREATE TABLE schedule (
    name BYTEA PRIMARY KEY,
    body TEXT NOT NULL,
    due  BIGINT NOT NULL
);
CREATE INDEX schedule_due ON schedule (due);

-- For people: select * from jobs where standing = 'dead';
CREATE VIEW jobs AS
SELECT convert_from(agent, 'UTF8') AS agent,
       convert_from(session, 'UTF8') AS session,
       convert_from(run, 'UTF8') AS run,
       convert_from(tenant, 'UTF8') AS tenant,
       priority, standing, failures, worker, error,
       to_timestamp(ready_at / 1000.0) AS ready_at,
       to_timestamp(created / 1000.0) AS created,
       to_timestamp(changed / 1000.0) AS changed
FROM job
ORDER BY id;
