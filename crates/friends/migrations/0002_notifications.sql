-- Readers of the changes wait for this instead of asking again and again. PostgreSQL only.
CREATE OR REPLACE FUNCTION people_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('people_changes', '');
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS people_changes_notify ON people_changes;
CREATE TRIGGER people_changes_notify AFTER INSERT ON people_changes
    FOR EACH STATEMENT EXECUTE FUNCTION people_notify();
DROP TRIGGER IF EXISTS people_trimmed_notify ON people_trimmed;
CREATE TRIGGER people_trimmed_notify AFTER UPDATE ON people_trimmed
    FOR EACH STATEMENT EXECUTE FUNCTION people_notify();
