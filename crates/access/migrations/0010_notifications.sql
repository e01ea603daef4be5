-- Readers of the changes wait for this instead of asking again and again. PostgreSQL only.
CREATE OR REPLACE FUNCTION access_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('access_changes', '');
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS access_changes_notify ON access_changes;
CREATE TRIGGER access_changes_notify AFTER INSERT ON access_changes
    FOR EACH STATEMENT EXECUTE FUNCTION access_notify();
DROP TRIGGER IF EXISTS access_trimmed_notify ON access_trimmed;
CREATE TRIGGER access_trimmed_notify AFTER UPDATE ON access_trimmed
    FOR EACH STATEMENT EXECUTE FUNCTION access_notify();
