-- The traffic lane stores its entries in blocks, one or a few for each append; the other lanes keep rows. Rows that an
-- earlier version wrote are moved into blocks when the journal is opened, and while such a version still runs.

CREATE TABLE blocks (
    -- The place of the first entry. The places of the others follow without a gap.
    first    INTEGER PRIMARY KEY,
    -- Entries ever appended to the lane before this block.
    ordinal  INTEGER NOT NULL,
    entries  INTEGER NOT NULL,
    -- XXH3 of data, first, ordinal and entries.
    checksum INTEGER NOT NULL,
    data     BLOB NOT NULL
) STRICT;

-- What was delivered of the traffic lane and not acknowledged: all entries from one place to another.
CREATE TABLE pending_ranges (
    group_id    INTEGER NOT NULL,
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    entries     INTEGER NOT NULL,
    consumer_id INTEGER NOT NULL,
    PRIMARY KEY (group_id, first)
) STRICT, WITHOUT ROWID;

-- Entries of the traffic lane before this place are trimmed: a block is removed once all of its entries are.
ALTER TABLE lanes ADD COLUMN kept_from INTEGER NOT NULL DEFAULT 0;
