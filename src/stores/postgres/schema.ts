/**
 * The schema in a database: one table, and two functions on it.
 *
 * A row is one state. Nothing but the primary key is indexed: so an update touches no index, and
 * its dead row is removed by the next visitor of the page (HOT). Idle rows are found by looking at
 * pages at random.
 */

/** Names as they stand in SQL, quoted. */
export interface Names {
  readonly table: string
  readonly read: string
  readonly swap: string
}

/** `table` is a name, or a schema and a name: `limits.sluice`. */
export function namesOf(table: string): Names {
  const path = table.split('.')
  const name = path.pop() as string
  const quoted = (last: string) => [...path, last].map((part) => `"${part}"`).join('.')
  return { table: quoted(name), read: quoted(`${name}_read`), swap: quoted(`${name}_swap`) }
}

/** The server's clock, in whole microseconds since 1970. */
export const NOW_US = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'

/**
 * No row equals one that was deleted before it, because its version is made up anew by each write.
 */
const NEW_VERSION = 'floor(random() * 9007199254740992)::bigint'

/**
 * How the statements within the functions are run. Never by reading the whole table: plans that
 * were made while it was empty are kept. And they wait for no lock for ever: those of the functions
 * themselves are held for one commit.
 */
const SETTINGS = `SET enable_seqscan TO off
SET lock_timeout TO '2s'`

/** The states of some rows and the time, which is read after them. */
const readFunction = ({ table, read }: Names) => `CREATE OR REPLACE FUNCTION ${read}(ids text[])
RETURNS TABLE (place bigint, held_version bigint, held_state text, now_us bigint)
LANGUAGE plpgsql
${SETTINGS}
AS $body$
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'the server is a standby' USING ERRCODE = 'read_only_sql_transaction';
  END IF;
  RETURN QUERY
    SELECT asked.place, held.version, encode(held.state, 'hex'), (SELECT ${NOW_US})
    FROM unnest(ids) WITH ORDINALITY AS asked (id, place)
    LEFT JOIN LATERAL (SELECT s.version, s.state FROM ${table} s WHERE s.id = asked.id OFFSET 0) held ON true;
END
$body$;`

/**
 * Writes rows that still have the version they were read with; of those with the same group number
 * all or none. Answers with the rows that were not written, as they stand now, and with the rest of
 * their groups. No version: a new row. No state: the row goes. No time of being idle: it stays as
 * it is, and is only told.
 *
 * Callers give the rows in the order of their ids. Rows that are there are locked in that order,
 * then new ones are entered in that order: so calls never wait for each other in a circle.
 */
const swapFunction = ({
  table,
  swap,
}: Names) => `CREATE OR REPLACE FUNCTION ${swap}(ids text[], versions bigint[], states bytea[], idles bigint[], groups int[], sweeps int)
RETURNS TABLE (place bigint, held_version bigint, held_state text, now_us bigint)
LANGUAGE plpgsql
${SETTINGS}
AS $body$
DECLARE
  r record;
  lost bigint[] := '{}';
  entered bigint[] := '{}';
  lost_groups int[] := '{}';
  has_new boolean := false;
  has_groups boolean := false;
  swept_us bigint;
  page bigint;
BEGIN
  FOR r IN SELECT * FROM unnest(ids, versions, states, idles, groups) WITH ORDINALITY AS a (id, version, state, idle_us, grp, place) LOOP
    has_groups := has_groups OR r.grp IS NOT NULL;
    has_new := has_new OR r.version IS NULL;
    CONTINUE WHEN r.idle_us IS NULL OR r.version IS NULL;
    IF r.grp IS NOT NULL THEN
      PERFORM 1 FROM ${table} s WHERE s.id = r.id AND s.version = r.version FOR UPDATE;
    ELSIF r.state IS NULL THEN
      DELETE FROM ${table} s WHERE s.id = r.id AND s.version = r.version;
    ELSE
      UPDATE ${table} s SET version = ${NEW_VERSION}, state = r.state, idle_us = r.idle_us WHERE s.id = r.id AND s.version = r.version;
    END IF;
    IF NOT FOUND THEN
      lost := lost || r.place;
      lost_groups := array_remove(lost_groups || r.grp, NULL);
    END IF;
  END LOOP;
  IF has_new THEN
    FOR r IN SELECT * FROM unnest(ids, versions, states, idles, groups) WITH ORDINALITY AS a (id, version, state, idle_us, grp, place) LOOP
      CONTINUE WHEN r.idle_us IS NULL OR r.version IS NOT NULL OR coalesce(r.grp = ANY (lost_groups), false);
      INSERT INTO ${table} AS s (id, version, state, idle_us) VALUES (r.id, ${NEW_VERSION}, r.state, r.idle_us) ON CONFLICT DO NOTHING;
      IF FOUND THEN
        entered := entered || r.place;
      ELSE
        lost := lost || r.place;
        lost_groups := array_remove(lost_groups || r.grp, NULL);
      END IF;
    END LOOP;
  END IF;
  IF has_groups THEN
    FOR r IN SELECT * FROM unnest(ids, versions, states, idles, groups) WITH ORDINALITY AS a (id, version, state, idle_us, grp, place) LOOP
      CONTINUE WHEN r.grp IS NULL;
      IF r.grp = ANY (lost_groups) THEN
        IF r.place = ANY (entered) THEN
          DELETE FROM ${table} s WHERE s.id = r.id;
        END IF;
        lost := array_remove(lost, r.place) || r.place;
      ELSIF r.idle_us IS NULL OR r.version IS NULL THEN
        CONTINUE;
      ELSIF r.state IS NULL THEN
        DELETE FROM ${table} s WHERE s.id = r.id;
      ELSE
        UPDATE ${table} s SET version = ${NEW_VERSION}, state = r.state, idle_us = r.idle_us WHERE s.id = r.id;
      END IF;
    END LOOP;
  END IF;
  FOR k IN 1..sweeps LOOP
    swept_us := ${NOW_US};
    page := floor(random() * pg_relation_size('${table}'::regclass) / current_setting('block_size')::int);
    DELETE FROM ${table} s WHERE s.idle_us <= swept_us AND s.ctid = ANY (ARRAY(
      SELECT t.ctid FROM ${table} t
      WHERE t.idle_us <= swept_us AND t.ctid = ANY (ARRAY(
        SELECT format('(%s,%s)', page, slot)::tid FROM generate_series(1, 291) slot))
      FOR UPDATE SKIP LOCKED));
  END LOOP;
  IF lost <> '{}' THEN
    RETURN QUERY
      SELECT told.place, held.version, encode(held.state, 'hex'), (SELECT ${NOW_US})
      FROM unnest(lost) AS told (place)
      LEFT JOIN LATERAL (SELECT s.version, s.state FROM ${table} s WHERE s.id = ids[told.place] OFFSET 0) held ON true;
  END IF;
END
$body$;`

/** `isUnlogged`: faster, empty after a crash of the server, and not on its replicas. */
export function migration(names: Names, isUnlogged: boolean): string {
  return `CREATE ${isUnlogged ? 'UNLOGGED ' : ''}TABLE IF NOT EXISTS ${names.table} (
  id text COLLATE "C" PRIMARY KEY, -- limiter:key:limit
  version bigint NOT NULL,         -- another one after each write
  state bytea NOT NULL,
  idle_us bigint NOT NULL          -- microseconds since 1970: from then on the row may go
) WITH (fillfactor = 70);
ALTER TABLE ${names.table} ALTER COLUMN state SET STORAGE EXTERNAL;

${readFunction(names)}

${swapFunction(names)}
`
}

/** The same as one statement. Processes that run it at the same time wait for each other. */
export function migrationToRun(names: Names, isUnlogged: boolean): string {
  return `DO $migrate$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('sluice migrate'));
  EXECUTE $text$${migration(names, isUnlogged)}$text$;
END $migrate$`
}
