-- Format of the body. Workers leave rows of a newer format to newer workers.
ALTER TABLE job ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE schedule ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
