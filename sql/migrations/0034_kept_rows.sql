-- additive: no droverd has ever deleted such a row.
-- What is reserved and spent counts against budgets by a level's row: one that is gone would be begun again at 0, and the lease has one row.
-- So nobody deletes them. Slots may go: a droverd that takes over counts them anew.
CREATE FUNCTION refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'rows of % are never deleted', TG_TABLE_NAME
    USING HINT = 'Set its figures right instead: check_counters() tells what they should be.'; END $$;
CREATE TRIGGER money_stays BEFORE DELETE OR TRUNCATE
    ON money FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();
CREATE TRIGGER lease_stays BEFORE DELETE OR TRUNCATE
    ON lease FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();
