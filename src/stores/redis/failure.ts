/** What the server's and the client's errors mean. */
import { SluiceError } from '../../errors.ts'

/** The server does not know the script: it did not run. Clients word it differently, and one user may be allowed EVAL only. */
export function isNotRun(error: unknown): boolean {
  return /^(?:\w+Error: )?(?:NOSCRIPT|NOPERM\b.*\bevalsha\b)|^An error was signalled by the server: - NoScriptError/i.test(messageOf(error))
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
