-- Whether a worker said that the run stands in the journal: what is deleted there does not begin anew. One at rest that a worker had does.
ALTER TABLE job ADD COLUMN stands BOOLEAN NOT NULL DEFAULT false;
UPDATE job SET stands = true WHERE standing = 'at_rest' AND begun;

-- What there is of a session goes with it.
CREATE INDEX job_in_session ON job (session);
