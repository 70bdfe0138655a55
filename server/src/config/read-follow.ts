/**
 * A rate that follows the load of the service. Each option is handed to the library, which stops at
 * the first mistake: it is put beside its place in the file and mended, until there is none.
 */
import { createLimiter, followLoad, type Limits, paceOf, type Rate, SluiceError, shown } from '../sluice.ts'
import { type FollowConfig, type LimiterTuning, type NamedLimits, SIGNAL_NAMES } from './config.ts'
import type { Reader } from './read.ts'
import type { Path } from './source.ts'

type Fields = Readonly<Record<string, unknown>>

const OPTIONS = ['limit', 'signal', 'min', 'max', 'from', 'to', 'everyMs', 'share']

/**
 * `isShared`: the store of the service is one that others share; undefined if that is not known.
 */
export function readFollow(
  reader: Reader,
  value: unknown,
  path: Path,
  limits: NamedLimits,
  ahead: LimiterTuning,
  isShared: boolean | undefined,
): FollowConfig | undefined {
  if (value === undefined) return undefined
  const fields = reader.fields(value, path, OPTIONS, 'follow')
  if (fields === undefined) return undefined
  if (!SIGNAL_NAMES.some((name) => name === fields.signal)) {
    reader.source.wrong([...path, 'signal'], `signal ${shown(fields.signal)} must be one of ${SIGNAL_NAMES.join(', ')}`)
  }
  if (isShared && fields.share === undefined) {
    reader.source.wrong(
      path,
      'share is missing: it must be said on a store that others share, because each copy follows its own load. share: 1 lets each copy decide by the whole rate',
    )
  }
  noteMistakes(reader, path, { limit: Object.keys(limits)[0], share: 1, ...known(fields) }, limits, ahead, fields)
  return fields as unknown as FollowConfig
}

/** What is wrong with a mapping is told already, and the signal is not the library's to make. */
function known(fields: Fields): Fields {
  const given = OPTIONS.filter((option) => option !== 'signal' && (option !== 'limit' || fields.limit !== undefined))
  return Object.fromEntries(
    given.filter((option) => fields[option] !== undefined || isRequired(option)).map((option) => [option, fields[option]]),
  )
}

function isRequired(option: string): boolean {
  return option === 'min' || option === 'max' || option === 'from' || option === 'to'
}

function noteMistakes(reader: Reader, path: Path, options: Fields, limits: NamedLimits, ahead: LimiterTuning, written: Fields): void {
  const names = Object.keys(limits)
  if (names.length > 1 && written.limit === undefined) {
    reader.source.wrong(path, `limit is missing: it must be one of the limits: ${names.join(', ')}`)
  }
  let mended = options
  // An option that was mended is not wrong again.
  for (const _ of OPTIONS) {
    const message = objection(limits, ahead, mended)
    if (message === undefined) return
    const option = OPTIONS.find((name) => message.startsWith(`follow ${name} `))
    reader.source.wrong(option === undefined ? path : [...path, option], message.replace(/^follow (\w+) undefined/, '$1 undefined'))
    if (option === undefined || option === 'limit') return
    mended = { ...mended, ...sampleFor(option, mended) }
  }
}

/** What the library says of them. */
function objection(limits: NamedLimits, ahead: LimiterTuning, options: Fields): string | undefined {
  const limiter = createLimiter(limits as Limits, ahead)
  try {
    followLoad(limiter as never, { ...options, signal: () => undefined } as never).close()
    return undefined
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    return error.message.replace(/^followLoad /, 'follow ').replace(': govern changes how many are in flight', '')
  } finally {
    limiter.close()
  }
}

function isRate(value: unknown): boolean {
  try {
    paceOf(value as Rate, 'max')
    return true
  } catch {
    return false
  }
}

/** A value that nobody objects to. */
function sampleFor(option: string, { max, from }: Fields): Fields {
  if (option === 'min') return { min: isRate(max) ? max : '1/s' }
  if (option === 'max') return { min: '1/s', max: '1/s' }
  if (option === 'to') return { to: from === 1 ? 2 : 1 }
  return { [option]: { from: 0, everyMs: 1_000, share: 1 }[option] }
}
