-- One row for each collection, with what its vectors are.
CREATE TABLE collection (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    embedder   TEXT,
    dimensions INTEGER,
    next       INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row for each record. The upper half of `seq` is the collection's number: the rows of one lie side by side, here and in what follows.
CREATE TABLE record (
    seq        INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL,
    id         TEXT NOT NULL,
    text       TEXT NOT NULL,
    metadata   TEXT NOT NULL,
    UNIQUE (collection, id)
) STRICT;

-- The numbers of a vector, each in four bytes, the lowest first; and how long it is.
CREATE TABLE vector (
    seq   INTEGER PRIMARY KEY,
    norm  REAL NOT NULL,
    value BLOB NOT NULL
) STRICT;

-- The words of the records; their texts stand above.
CREATE VIRTUAL TABLE record_words USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0');
