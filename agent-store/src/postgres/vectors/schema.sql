-- One row for each collection, with what its vectors are.
CREATE TABLE collection (
    number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    embedder   TEXT,
    dimensions INTEGER,
    indexed    BOOLEAN NOT NULL DEFAULT false
);

-- One row for each record. `length` is how many words it has.
CREATE TABLE record (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection BIGINT NOT NULL REFERENCES collection,
    id         TEXT NOT NULL,
    text       TEXT NOT NULL,
    metadata   JSONB NOT NULL,
    words      TSVECTOR NOT NULL,
    length     INTEGER NOT NULL,
    vector     {extension}.vector,
    UNIQUE (collection, id)
);
CREATE INDEX record_order ON record (collection, seq);
CREATE INDEX record_words ON record USING gin (words);
