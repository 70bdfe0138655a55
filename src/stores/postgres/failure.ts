/**
 * Errors of the server and of the client, with advice. Those of the server are known by their
 * SQLSTATE.
 */
import { SluiceError } from '../../errors.ts'

/**
 * The transaction was rolled back because of others: nothing happened, and the same again may
 * succeed.
 */
const COLLISIONS = ['40001', '40P01']
/** The table, the functions or their schema are not there: nothing happened. */
const MISSING = ['42P01', '42883', '3F000']

export function isCollision(error: unknown): boolean {
  return COLLISIONS.includes(stateOf(error))
}

export function isMissing(error: unknown): boolean {
  return MISSING.includes(stateOf(error))
}

/**
 * Errors that say something about the data of one decision, and nothing about the next: nothing
 * happened.
 */
export function isOfTheData(error: unknown): boolean {
  return adviceOn(stateOf(error), ISOLATED) !== undefined
}

type Advice = readonly [states: RegExp, whatToDo: string]

const ISOLATED: readonly Advice[] = [
  [/^(22021|22P05)$/, 'the key has characters that the encoding of the database has not: use a database of encoding UTF8'],
  [/^54000$/, 'the state or the key is too large for a row'],
]

const SET_UP =
  'the table is missing or of an older version of Sluice: run what `sluice migrate --postgres` prints, or give postgresStore { migrate: true }'

/** Errors of a server or a connection that is not well: the next decision would fail too. */
const OUTAGES: readonly Advice[] = [
  [/^(42P01|42883|3F000)$/, SET_UP],
  [/^42501$/, 'the user lacks rights: see docs/guides/postgres.md'],
  [/^25006$/, 'the server is a standby or takes no writes: connect to the primary'],
  [/^28/, 'the server does not accept the user or the password'],
  [/^3D000$/, 'there is no such database'],
  [/^53100$/, 'the disk of the server is full'],
  [/^53300$/, 'the server has no connection left: lower the sizes of the pools, or put pgbouncer in front'],
  [/^55P03$/, 'another session holds a lock on the table or its rows'],
  [/^57014$/, 'the statement was cancelled, or took longer than statement_timeout'],
  [/^57P03$/, 'the server is starting or stopping'],
  [/^57P0[12]$/, 'the server ended the connection'],
  [/^26000$/, 'prepared statements do not work behind this pgbouncer: make the client with prepare: false'],
  [/^40/, 'too many others wrote the same rows at the same time'],
]

export function storeError(cause: unknown): SluiceError {
  if (cause instanceof SluiceError) return cause
  const state = stateOf(cause)
  const isolated = adviceOn(state, ISOLATED)
  const advice = isolated ?? adviceOn(state, OUTAGES)
  const text = advice === undefined ? `Postgres: ${messageOf(cause)}` : `Postgres: ${messageOf(cause)} (${advice})`
  return new SluiceError('STORE', text, { cause, isolated: isolated !== undefined })
}

function adviceOn(state: string, known: readonly Advice[]): string | undefined {
  return known.find(([states]) => states.test(state))?.[1]
}

/** Errors of the server have one, and a severity beside it: those of sockets have codes too. */
function stateOf(error: unknown): string {
  const { code, severity } = Object(error) as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && severity !== undefined ? code : ''
}

/** Node gives an error without words where it tried several addresses. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || String((error as { code?: unknown }).code ?? error.name)
}
