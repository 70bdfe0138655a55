/** Errors of the server and of the client, with advice. */
import { SluiceError } from '../../errors.ts'

/**
 * Clients put words of their own before those of the server, and some put theirs in place of its.
 * One writes a colon behind the code.
 */
const BEFORE = String.raw`^(?:\w*Error: |An error was signalled by the server: - )?`

function saying(words: string): RegExp {
  return new RegExp(`${BEFORE}(?:${words})`, 'i')
}

/** The server does not know the script: it did not run. One user may be allowed EVAL only. */
const NOT_RUN = saying(String.raw`NOSCRIPT|NOPERM\b.*\bevalsha\b`)
const FORBIDDEN = saying('NOPERM|PermissionDenied')
const CROSS_SLOT = saying('CROSSSLOT')
/**
 * A slot is on its way to another node. One client asks a few times itself, and says what it was
 * told last.
 */
const TRY_AGAIN = saying(String.raw`TRYAGAIN|Too many Cluster redirections\. Last error: .*(?:MOVED|ASK|TRYAGAIN)`)
const NO_LUA = /unknown command.*\beval/i

export function isNotRun(error: unknown): boolean {
  return NOT_RUN.test(messageOf(error))
}

/** The user may not run the script, or touch one of its keys: nothing ran. */
export function isForbidden(error: unknown): boolean {
  return FORBIDDEN.test(messageOf(error))
}

/** The keys are on several servers of a cluster: nothing ran. */
export function isCrossSlot(error: unknown): boolean {
  return CROSS_SLOT.test(messageOf(error))
}

/**
 * Some of the keys have moved to another node already, others not: nothing ran. A key by itself
 * would be found.
 */
export function isTryAgain(error: unknown): boolean {
  return TRY_AGAIN.test(messageOf(error))
}

const PERMISSIONS = 'let the user run EVAL, EVALSHA, TIME and the commands of the keys: see docs/reference/redis-keys.md'

/** Errors that say something about one decision, and nothing about the next. */
const ISOLATED: readonly Advice[] = [
  [saying('SLUICE:? .* the format '), 'another version of Sluice wrote it: run that version or a later one, or delete the key'],
  [saying('SLUICE:? '), 'something else wrote it: delete the key, or give redisStore another prefix'],
  [saying('WRONGTYPE'), 'something else wrote the key: delete it, or give redisStore another prefix'],
  [CROSS_SLOT, 'the keys of this decision are on several servers: use the client of a cluster, or redisStore({ hashTag })'],
  [saying('MOVED|ASK'), 'the server is a node of a cluster: use the client of a cluster'],
  [TRY_AGAIN, 'the slot is being moved to another node: it will answer when that is done'],
  [FORBIDDEN, PERMISSIONS],
  [/The user executing the script can't|ACL failure in script/, PERMISSIONS],
]

/** Errors of a server or a connection that is not well: the next decision would fail too. */
const OUTAGES: readonly Advice[] = [
  [saying('READONLY'), 'the client is connected to a replica: connect it to the primary, by Sentinel or Cluster where there is a failover'],
  [saying('LOADING|BusyLoading'), 'the server is still loading its data: it will answer when it has'],
  [saying('BUSY'), 'another script has been running for too long: SCRIPT KILL ends it'],
  [saying('OOM'), 'the server is out of memory: raise maxmemory, or make room; evicting keys would forget limits'],
  [saying('MISCONF'), 'the server cannot save its data and takes no writes: look at its log and its disk'],
  [saying('NOREPLICAS'), 'too few replicas are connected (min-replicas-to-write), and the server takes no writes'],
  [saying('CLUSTERDOWN'), 'the cluster does not serve all slots: look at CLUSTER INFO'],
  [saying('MASTERDOWN'), 'the replica has lost its primary: connect the client to the primary'],
  // The clients' own errors about a server that they do not reach.
  [/max retries per request/, 'the server cannot be reached: look at its address, and at the error events of the client, which say why'],
  [
    /^(?:The client|Connection) is closed/,
    'the client is not connected: call its connect() first, and close it only when nothing is limited by it any more',
  ],
  // A client that is not signed in may not even send as many arguments as decisions have, or as
  // long a script.
  [
    saying('NOAUTH|WRONGPASS|AuthenticationFailed|.*unauthenticated (?:multi)?bulk'),
    'the server wants a name and a password: give them to the client',
  ],
]

type Advice = readonly [says: RegExp, whatToDo: string]

export function storeError(cause: unknown): SluiceError {
  const message = messageOf(cause)
  if (NO_LUA.test(message)) {
    return new SluiceError('UNSUPPORTED', `the server runs no Lua scripts, and Sluice needs them: ${message}`, { cause })
  }
  const isolated = adviceOn(message, ISOLATED)
  const advice = isolated ?? adviceOn(message, OUTAGES)
  const text = advice === undefined ? `Redis: ${message}` : `Redis: ${message} (${advice})`
  return new SluiceError('STORE', text, { cause, isolated: isolated !== undefined })
}

function adviceOn(message: string, known: readonly Advice[]): string | undefined {
  return known.find(([says]) => says.test(message))?.[1]
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
