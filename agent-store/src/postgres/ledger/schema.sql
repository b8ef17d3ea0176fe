-- What is used, and booked.
CREATE TABLE account (
    name        TEXT PRIMARY KEY,
    tokens      BIGINT NOT NULL,
    cost        BIGINT NOT NULL,
    model_calls BIGINT NOT NULL,
    tool_calls  BIGINT NOT NULL
);

-- What is set aside for calls under way. Whoever holds one says now and then that it lives.
CREATE TABLE reservation (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account     TEXT NOT NULL,
    tokens      BIGINT NOT NULL,
    cost        BIGINT NOT NULL,
    model_calls BIGINT NOT NULL,
    tool_calls  BIGINT NOT NULL,
    dead_at     TIMESTAMPTZ NOT NULL
);

CREATE INDEX reservation_of_account ON reservation (account);
