-- Whether somebody else vouches for this user: the whitelist, or the site's verify endpoint. Such a row is an account,
-- made when they first announced; whether they may announce is asked of those who vouch.
ALTER TABLE users ADD COLUMN vouched BOOLEAN NOT NULL DEFAULT FALSE;
