-- One row for each message of a chat, in order. `round` is the round that it is in, `open` whether the next one is too.
CREATE TABLE chat_message (
    seq   INTEGER PRIMARY KEY,
    chat  TEXT NOT NULL,
    id    TEXT NOT NULL,
    round INTEGER NOT NULL,
    open  INTEGER NOT NULL,
    body  TEXT NOT NULL,
    UNIQUE (chat, id)
) STRICT;
CREATE INDEX chat_message_order ON chat_message (chat, seq);

-- One row for each memory.
CREATE TABLE memory (
    seq      INTEGER PRIMARY KEY,
    user     TEXT NOT NULL,
    id       TEXT NOT NULL,
    text     TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (user, id)
) STRICT;
CREATE INDEX memory_order ON memory (user, seq);

-- The words of the memories.
CREATE VIRTUAL TABLE memory_words USING fts5 (text, content = 'memory', content_rowid = 'seq', tokenize = 'unicode61 remove_diacritics 0');
CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
    INSERT INTO memory_words (rowid, text) VALUES (new.seq, new.text);
END;
CREATE TRIGGER memory_deleted AFTER DELETE ON memory BEGIN
    INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.seq, old.text);
END;
CREATE TRIGGER memory_changed AFTER UPDATE ON memory BEGIN
    INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.seq, old.text);
    INSERT INTO memory_words (rowid, text) VALUES (new.seq, new.text);
END;
