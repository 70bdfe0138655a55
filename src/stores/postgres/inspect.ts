/** Reads the rows of one key and says what they mean. It writes nothing. */
import { type Inspected, statesIn } from '../inspected.ts'
import { type PostgresClient, queryOf } from './client.ts'
import { storeError } from './failure.ts'
import { writtenKey } from './keys.ts'
import { NOW_US, namesOf } from './schema.ts'
import { bytesOf } from './wire.ts'

/**
 * The states of a key of a limiter now, by the server's clock: one state for each limit that is in
 * use.
 */
export async function inspectRows(client: PostgresClient, table: string, limiter: string, key: string): Promise<Inspected[]> {
  const before = `${limiter}:${writtenKey(key)}`
  const columns = `id, encode(state, 'hex') AS state, idle_us, ${NOW_US} AS now_us`
  // Behind it stands the name of a limit, which has no colon; of other keys that begin alike there
  // may be millions.
  const isOfKey = "strpos(substr(id, length($1) + 1), ':') = 0"
  const text = `SELECT ${columns} FROM ${namesOf(table).table} WHERE id > $1 AND id < $2 AND ${isOfKey} AND state <> '' ORDER BY id`
  // The sign behind the colon, in the order of the ids.
  const rows = await queryOf(client)(text, [`${before}:`, `${before};`]).catch((error) => Promise.reject(storeError(error)))
  return rows.flatMap(({ id, state, idle_us, now_us }) => {
    const nowUs = Number(now_us)
    return statesIn(String(id), bytesOf(String(state)), nowUs, Math.max(0, Number(idle_us) - nowUs) / 1000)
  })
}
