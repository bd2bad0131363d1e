-- Partition the ledger of a site on PostgreSQL: steps, outputs, drafts and usage, each in 16 tables by conversation.
-- For a site whose ledger is too large for one table, i.e. hundreds of millions of steps. See docs/operating.md.
--
-- Stop the site and take a backup first. All or nothing happens, and the site runs as before. The copy needs as much
-- disk space as the tables have, and the time to write them once.
BEGIN;

DO $$
DECLARE
    partitions CONSTANT integer := 16;
    ledger text;
    definition text;
    definitions text[];
BEGIN
    FOREACH ledger IN ARRAY ARRAY['step', 'output', 'draft', 'usage'] LOOP
        ledger := 'conversations_' || ledger;

        -- What is made again on the new table, as it was. A key has to name the column that divides the rows, and all
        -- of this site's do, except for the primary key: the id is still unique, as one sequence gives it.
        SELECT array_agg(command ORDER BY command) INTO definitions FROM (
            SELECT format('ALTER TABLE %I ADD CONSTRAINT %I %s', ledger, conname,
                          replace(pg_get_constraintdef(oid), 'PRIMARY KEY (id)', 'PRIMARY KEY (id, conversation_id)'))
                AS command
            FROM pg_constraint WHERE conrelid = ledger::regclass AND contype IN ('p', 'u', 'f')
            UNION ALL
            SELECT pg_get_indexdef(indexrelid)
            FROM pg_index WHERE indrelid = ledger::regclass
                AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = ledger::regclass)
            UNION ALL
            SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = ledger::regclass AND NOT tgisinternal
        ) AS made_again;

        EXECUTE format('CREATE TABLE new_%1$s (LIKE %1$I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING IDENTITY)
                        PARTITION BY HASH (conversation_id)', ledger);
        FOR remainder IN 0 .. partitions - 1 LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF new_%s FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                           ledger || '_' || remainder, ledger, partitions, remainder);
        END LOOP;
        EXECUTE format('INSERT INTO new_%1$s OVERRIDING SYSTEM VALUE SELECT * FROM %1$I', ledger);
        EXECUTE format('SELECT setval(pg_get_serial_sequence(''new_%1$s'', ''id''), coalesce(max(id), 0) + 1, false)
                        FROM %1$I', ledger);
        EXECUTE format('DROP TABLE %I', ledger);
        EXECUTE format('ALTER TABLE new_%1$s RENAME TO %1$s', ledger);
        EXECUTE format('ALTER SEQUENCE new_%1$s_id_seq RENAME TO %1$s_id_seq', ledger);
        FOREACH definition IN ARRAY definitions LOOP
            EXECUTE definition;
        END LOOP;
    END LOOP;

    -- A trigger for each row also stands on the partitions, one for each statement does not.
    FOR remainder IN 0 .. partitions - 1 LOOP
        EXECUTE format('CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON conversations_step_%s
                        FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuses()', remainder);
    END LOOP;
END
$$;

COMMIT;
ANALYZE;
