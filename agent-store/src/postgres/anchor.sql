-- The newest entry at which whoever reads a session may begin. Older releases wrote none.
ALTER TABLE session ADD COLUMN anchor BIGINT;
