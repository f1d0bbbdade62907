-- Times are milliseconds since the epoch; states are the codes of sqlite/codes.rs, of which those
-- from 6 up are terminal.

-- Owners are long strings and stand in every index, hence their numbers.
CREATE TABLE owners (
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;

-- last_seq is as of the last change of the row. An append that changes nothing else writes its
-- log row only, so an open task's newest entry is the greater of this and the log's.
CREATE TABLE tasks (
    num            INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    owner          INTEGER NOT NULL,
    context        TEXT NOT NULL,
    state          INTEGER NOT NULL,
    since          INTEGER NOT NULL,
    last_seq       INTEGER NOT NULL,
    message_seq    INTEGER NOT NULL,
    checkpoint_seq INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    leased         INTEGER NOT NULL,
    -- 0: removed. 1: could be removed, as the checkpoint covers it. 2: needed.
    log            INTEGER NOT NULL
) STRICT;

-- Lists merge the states, so that one index serves those of one state and those of all.
CREATE INDEX tasks_by_state ON tasks (owner, state, since DESC, id DESC);
CREATE INDEX tasks_by_context ON tasks (owner, context, state, since DESC, id DESC);
-- What retention looks for.
CREATE INDEX tasks_ended ON tasks (log, since) WHERE state >= 6;
-- What a start looks for.
CREATE INDEX tasks_leased ON tasks (leased) WHERE leased = 1;

-- How many tasks of a state an owner has.
CREATE TABLE counts (
    owner INTEGER NOT NULL,
    state INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (owner, state)
) STRICT, WITHOUT ROWID;

-- One row per append: the bodies of its entries, joined by newlines. The key is the task's number
-- and the first entry's, packed (num << 28 | seq).
CREATE TABLE log (
    place    INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    bodies   BLOB NOT NULL
) STRICT;

-- Apart from tasks, whose rows change often and are read by the page.
CREATE TABLE checkpoints (
    task INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE idempotency (
    owner   INTEGER NOT NULL,
    key     TEXT NOT NULL,
    task    TEXT NOT NULL,
    digest  BLOB NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expiry ON idempotency (expires);

-- A delivery names its task by id and carries its own body, so it outlives both task and log.
CREATE TABLE deliveries (
    id       INTEGER PRIMARY KEY,
    owner    INTEGER NOT NULL,
    task     TEXT NOT NULL,
    config   TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    -- 0: behind an older one of its task and config. 1: the oldest of them. 2: given up.
    place    INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    node     TEXT,
    reason   TEXT,
    body     BLOB NOT NULL
) STRICT;
CREATE INDEX deliveries_due ON deliveries (due, id) WHERE place = 1;
CREATE INDEX deliveries_route ON deliveries (task, config, id) WHERE place < 2;
CREATE INDEX deliveries_dead ON deliveries (id) WHERE place = 2;
CREATE INDEX deliveries_dead_of ON deliveries (task) WHERE place = 2;
