/** What the server's and the client's errors mean. */
import { SluiceError } from '../../errors.ts'

/** Clients put words of their own before those of the server. */
const BEFORE = String.raw`^(?:\w*Error: |An error was signalled by the server: - )?`

/** The server does not know the script: it did not run. One user may be allowed EVAL only. */
const NOT_RUN = new RegExp(String.raw`${BEFORE}(?:NoScriptError|NOSCRIPT|NOPERM\b.*\bevalsha\b)`, 'i')
const FORBIDDEN = new RegExp(String.raw`${BEFORE}(?:NOPERM|PermissionDenied)`, 'i')
const CROSS_SLOT = new RegExp(String.raw`${BEFORE}(?:CROSSSLOT|CrossSlot)`, 'i')

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

export function storeError(cause: unknown): SluiceError {
  const message = messageOf(cause)
  if (/unknown command.*\beval/i.test(message)) {
    return new SluiceError('UNSUPPORTED', `the server runs no Lua scripts, and Sluice needs them: ${message}`, { cause })
  }
  return new SluiceError('STORE', `Redis: ${message}`, { cause })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
