-- What is known of a client only as a sum: what runs brought that were put away, and what entries without totals brought,
-- packed into a few bytes. Empty: nothing, as of most clients, and in all rows from before.
ALTER TABLE ledger_clients ADD COLUMN sums BYTEA NOT NULL DEFAULT '';
