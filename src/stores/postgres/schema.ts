/**
 * The schema in a database: one table, and functions on it that read rows and write them.
 *
 * A row is one state. Nothing but the primary key is indexed: so an update touches no index, and
 * its dead row is removed by the next visitor of the page (HOT). Idle rows are found by looking at
 * pages, from a random one on.
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
 * An insert finds no row, as its reader did, also where a row came in between, went idle and was
 * swept. So an insert counts only within this time after its reading, and a row is swept only when
 * it has been idle for longer: one that was in use at the reading is still there.
 */
const LATE_US = 250_000
/**
 * How long a row without a state is kept for the next attempt of a late insert: the driver waits
 * for two answers, 10 s each.
 */
const EMPTY_ROW_US = 30_000_000
/**
 * Three times as many rows are looked at as are new, so fewer rows stay idle than are in use. A
 * page has nearly 60, but few between two runs of VACUUM where rows come and go: then several pages
 * are looked at, at most as many as rows.
 */
const LOOKS_FOR_A_SWEEP = 48
/** Before PostgreSQL 14, where each place of a page is looked at by itself. */
const PAGES_FOR_A_SLOW_SWEEP = 3

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
 * it is, and is only told. `read_us` is the server's time at which they were read.
 *
 * Callers give the rows in the order of their ids. Rows that are there are locked in that order,
 * then new ones are entered in that order: so calls never wait for each other in a circle.
 *
 * New rows that come late are entered without a state, and are lost: a further attempt finds them
 * by their version, however long it takes.
 */
const swapFunction = ({
  table,
  swap,
}: Names) => `CREATE OR REPLACE FUNCTION ${swap}(ids text[], versions bigint[], states bytea[], idles bigint[], groups int[], read_us bigint, sweeps int)
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
  by_ranges boolean;
  swept_us bigint;
  pages bigint;
  page bigint;
  past bigint;
  span bigint := 1;
  most_pages bigint;
  looks bigint;
  idle_rows tid[];
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
    IF entered <> '{}' AND ${NOW_US} > read_us + ${LATE_US} THEN
      UPDATE ${table} s SET state = '', idle_us = ${NOW_US} + ${EMPTY_ROW_US}
      WHERE s.id = ANY (ARRAY(SELECT ids[late.place] FROM unnest(entered) AS late (place)));
      lost := lost || entered;
      lost_groups := array_remove(lost_groups || ARRAY(SELECT groups[late.place] FROM unnest(entered) AS late (place)), NULL);
      entered := '{}';
    END IF;
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
  IF sweeps > 0 THEN
    by_ranges := current_setting('server_version_num')::int >= 140000;
    swept_us := ${NOW_US} - ${LATE_US};
    pages := pg_relation_size('${table}'::regclass) / current_setting('block_size')::int;
    page := floor(random() * pages);
    looks := ${LOOKS_FOR_A_SWEEP} * sweeps;
    most_pages := least(pages, CASE WHEN by_ranges THEN looks ELSE ${PAGES_FOR_A_SLOW_SWEEP} * sweeps END);
    WHILE looks > 0 AND most_pages > 0 LOOP
      past := page + least(span, most_pages);
      IF by_ranges THEN
        SELECT looks - count(*), array_agg(t.ctid) FILTER (WHERE t.idle_us <= swept_us) INTO looks, idle_rows
        FROM ${table} t WHERE t.ctid >= format('(%s,0)', page)::tid AND t.ctid < format('(%s,0)', past)::tid;
      ELSE
        SELECT looks - count(*), array_agg(t.ctid) FILTER (WHERE t.idle_us <= swept_us) INTO looks, idle_rows
        FROM ${table} t WHERE t.ctid = ANY (ARRAY(
          SELECT format('(%s,%s)', p, slot)::tid FROM generate_series(page, past - 1) p, generate_series(1, 291) slot));
      END IF;
      DELETE FROM ${table} s WHERE s.idle_us <= swept_us AND s.ctid = ANY (ARRAY(
        SELECT t.ctid FROM ${table} t WHERE t.idle_us <= swept_us AND t.ctid = ANY (idle_rows) FOR UPDATE SKIP LOCKED));
      most_pages := most_pages - (past - page);
      page := CASE WHEN past < pages THEN past ELSE 0 END;
      span := 2 * span;
    END LOOP;
  END IF;
  IF lost <> '{}' THEN
    RETURN QUERY
      SELECT told.place, held.version, encode(held.state, 'hex'), (SELECT ${NOW_US})
      FROM unnest(lost) AS told (place)
      LEFT JOIN LATERAL (SELECT s.version, s.state FROM ${table} s WHERE s.id = ids[told.place] OFFSET 0) held ON true;
  END IF;
END
$body$;`

/**
 * What versions before call, whose inserts are never late and whose sweeps are too early: they are
 * told.
 */
const formerSwapFunction = ({
  table,
  swap,
}: Names) => `CREATE OR REPLACE FUNCTION ${swap}(ids text[], versions bigint[], states bytea[], idles bigint[], groups int[], sweeps int)
RETURNS TABLE (place bigint, held_version bigint, held_state text, now_us bigint)
LANGUAGE plpgsql
AS $body$
BEGIN
  RAISE EXCEPTION 'the table ${table} is of a later version of Sluice than this process: update the process' USING ERRCODE = 'feature_not_supported';
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

${formerSwapFunction(names)}
`
}

/** The same as one statement. Processes that run it at the same time wait for each other. */
export function migrationToRun(names: Names, isUnlogged: boolean): string {
  return `DO $migrate$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('sluice migrate'));
  EXECUTE $text$${migration(names, isUnlogged)}$text$;
END $migrate$`
}
