-- Large strings are kept once for all entries that have them; see `part`. How many parts an entry has:
ALTER TABLE entry ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;

-- The content of a JSON string, by the SHA-256 of its bytes.
CREATE TABLE blob (
    id      INTEGER PRIMARY KEY,
    hash    BLOB NOT NULL UNIQUE,
    content TEXT NOT NULL
) STRICT;

-- A blob belongs at the byte `at` of an entry's body, which has an empty string there.
CREATE TABLE part (
    entry INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    blob  INTEGER NOT NULL,
    PRIMARY KEY (entry, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX part_blob ON part (blob);

-- A blob goes with the last entry that has it.
CREATE TRIGGER entry_gone AFTER DELETE ON entry WHEN OLD.parts > 0
BEGIN DELETE FROM part WHERE entry = OLD.id; END;
CREATE TRIGGER part_gone AFTER DELETE ON part WHEN NOT EXISTS (SELECT 1 FROM part WHERE blob = OLD.blob)
BEGIN DELETE FROM blob WHERE id = OLD.blob; END;
