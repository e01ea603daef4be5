-- until: the row counts until the cutoff has reached this moment: later than at where a client was told a longer interval
-- than usual. Clients are 33 bytes each from here on; what is known of those before is what the row shows.
ALTER TABLE activity ADD COLUMN until INTEGER NOT NULL DEFAULT 0;
UPDATE activity SET until = at;

DROP INDEX activity_due;
CREATE INDEX activity_due ON activity (until);
CREATE INDEX activity_due_of_user ON activity (passkey, until);
