-- Where runs began, so that one is found by its id; few entries are of this kind.
CREATE INDEX run_started ON entry (session, md5(run)) WHERE body LIKE '{"run_started"%';
