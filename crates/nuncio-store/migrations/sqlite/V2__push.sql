-- Push notification configs, and deliveries that name their entry instead of carrying a copy.
-- Until now nothing made deliveries, so none are lost.

CREATE TABLE push_configs (
    num         INTEGER PRIMARY KEY,
    task        INTEGER NOT NULL,
    id          TEXT NOT NULL,
    destination TEXT NOT NULL,
    body        BLOB NOT NULL,
    UNIQUE (task, id)
) STRICT;

DROP TABLE deliveries;
CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY,
    task        INTEGER NOT NULL,
    config      INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    destination TEXT NOT NULL,
    -- 0: behind an older one of its config. 1: the oldest of them. 2: given up.
    place       INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    node        TEXT,
    reason      TEXT
) STRICT;
CREATE INDEX deliveries_ready ON deliveries (destination, due, id) WHERE place = 1;
CREATE INDEX deliveries_route ON deliveries (config, id) WHERE place < 2;
CREATE INDEX deliveries_of_task ON deliveries (task);
CREATE INDEX deliveries_dead ON deliveries (id) WHERE place = 2;

-- Whether an ended task has deliveries to be made, and so must stay.
ALTER TABLE tasks ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
DROP INDEX tasks_ended;
CREATE INDEX tasks_ended ON tasks (log, since) WHERE state >= 6 AND held = 0;
