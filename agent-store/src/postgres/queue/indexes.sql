-- A renewal changes what no index holds, so that it writes the row alone.
DROP INDEX job_running;
CREATE INDEX job_running ON job (id) WHERE standing = 'running';

-- Whether there is anything for a worker, it asks without the others' lock.
CREATE INDEX job_ready ON job (agent, ready_at) WHERE standing = 'queued';

-- A run is looked for by its id alone.
CREATE INDEX job_of_run ON job (run);
