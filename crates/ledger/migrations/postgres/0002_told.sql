-- What the entries of a run told besides counters: time, what multipliers added, completions, packed into a few bytes.
-- Empty: nothing, as in all rows from before, and in settled ones.
ALTER TABLE ledger_runs ADD COLUMN told BYTEA NOT NULL DEFAULT '';
