/**
 * Every error Sluice throws is one of these: match on `code`, never on the message.
 * The message always names the value that was wrong and the rule it broke.
 */
export type SluiceErrorCode =
  | 'CONFIG' // a limit or an option is outside what Sluice accepts
  | 'COST' // a cost is not a whole number of permits in the accepted range
  | 'KEY' // a key is missing, empty or too long
  | 'UNSUPPORTED' // this algorithm, store or runtime cannot do what was asked
  | 'TIMEOUT' // a wait did not end in time
  | 'IMPOSSIBLE' // the cost can never fit, however long one waits
  | 'QUEUE_FULL' // too many are waiting already
  | 'STORE' // the store failed or did not understand what it holds
  | 'CLOSED' // the limiter was closed
  | 'LOST' // a permit is no longer held: its lease ran out

export interface SluiceErrorOptions {
  readonly cause?: unknown
  /**
   * Of a failure of the store: whether it concerns this one decision (its key, say) and not the
   * next one. Default false.
   */
  readonly isolated?: boolean
  /** Of a limit that cannot be kept: the value nearest to the wrong one that works. */
  readonly nearest?: number | string | undefined
}

/**
 * Which errors are ours, whatever copy of the package made them: a process may hold one for
 * `import` and one for `require`.
 */
const OURS = Symbol.for('sluice.error')

export class SluiceError extends Error {
  readonly code: SluiceErrorCode
  readonly isolated: boolean
  declare readonly nearest?: number | string

  /** A class that extends it has instances of its own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: it is inherited
    return this === SluiceError ? OURS in Object(value) : super[Symbol.hasInstance](value)
  }

  get [OURS](): true {
    return true
  }

  constructor(code: SluiceErrorCode, message: string, options: SluiceErrorOptions = {}) {
    super(message, options)
    this.name = 'SluiceError'
    this.code = code
    this.isolated = options.isolated ?? false
    if (options.nearest !== undefined) this.nearest = options.nearest
  }
}

interface WarningHost {
  process?: { emitWarning?(message: string, options: object): void }
  console?: { warn(text: string): void }
}

/**
 * Warns of an error that no caller waits for. In Node: a warning, with a code to listen for or to
 * silence.
 */
export function warn(code: string, message: string, cause?: unknown): void {
  const { process, console } = globalThis as WarningHost
  const detail = cause === undefined ? {} : { detail: String(cause) }
  if (process?.emitWarning !== undefined) process.emitWarning(message, { type: 'SluiceWarning', code, ...detail })
  else console?.warn(`[${code}] SluiceWarning: ${message}`)
}

const told = new Set<string>()

/** The same, once in a process. */
export function warnOnce(code: string, message: string, cause?: unknown): void {
  if (told.has(message)) return
  told.add(message)
  warn(code, message, cause)
}

/** Shows a wrong value in a message: short, on one line, and telling `'5'` from `5`. */
export function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'symbol') return String(value)
  if (typeof value === 'object' && value !== null) return shortened(safeJson(value))
  return typeof value === 'string' ? shortened(JSON.stringify(value.slice(0, 60))) : String(value)
}

function safeJson(value: object): string {
  try {
    return JSON.stringify(value) ?? Object.prototype.toString.call(value)
  } catch {
    return Object.prototype.toString.call(value)
  }
}

function shortened(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`
}
