-- Whether somebody else vouches for this user: the whitelist, or the site's verify endpoint. Such a row is an account,
-- made when they first announced; whether they may announce is asked of those who vouch.
--
-- It must be possible to repeat this, and MySQL has no ADD COLUMN IF NOT EXISTS.
SET @add_vouched = (
    SELECT IF(count(*) = 0,
              'ALTER TABLE users ADD COLUMN vouched BOOLEAN NOT NULL DEFAULT FALSE, ADD CONSTRAINT vouched_is_0_or_1 CHECK (vouched IN (0, 1))',
              'DO 0')
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'users' AND column_name = 'vouched'
);
PREPARE add_vouched FROM @add_vouched;
EXECUTE add_vouched;
DEALLOCATE PREPARE add_vouched;
