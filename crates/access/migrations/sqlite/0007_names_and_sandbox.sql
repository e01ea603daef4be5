-- The display name of a user, for people: NULL where there is none.
ALTER TABLE users ADD COLUMN name TEXT
    CONSTRAINT user_name_is_1_to_100_characters CHECK (length(name) BETWEEN 1 AND 100);

-- Made by "rollcall sandbox", and removed by "rollcall sandbox clear".
ALTER TABLE users ADD COLUMN sandbox INTEGER NOT NULL DEFAULT 0
    CONSTRAINT sandbox_is_0_or_1 CHECK (sandbox IN (0, 1));
