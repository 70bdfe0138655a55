/**
 * A command line of several commands: help, versions, and what its exit codes mean. The service has
 * more commands than the library.
 */
import { SluiceError, type SluiceErrorCode } from '../errors.ts'
import { VERSION } from './version.ts'

export interface Command {
  /** One line of the list of commands. */
  readonly summary: string
  /** Its own help. */
  readonly usage: string
  run(args: string[]): number | Promise<number>
}

export type Commands = Readonly<Record<string, Command>>

/** The result of a command line. */
export const DONE = 0
export const FAILED = 1
export const MISUSED = 2
export const NO_SUCH_KEY = 3

const EXIT_CODES = `exit codes:
  ${DONE}  done
  ${FAILED}  it failed: a configuration with mistakes, a file or a server that is not there, a key that something else wrote
  ${MISUSED}  wrong usage: no such command or option, a wrong value
  ${NO_SUCH_KEY}  inspect: there is no such key`

/** Errors that no other command line would cure. */
const OF_THE_SERVER: readonly SluiceErrorCode[] = ['STORE', 'UNSUPPORTED']

export async function runCommand(commands: Commands, [name, ...args]: readonly string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || (name === 'help' && args.length === 0)) return said(overview(commands))
  if (name === '--version' || name === '-v' || name === 'version') return said(VERSION)
  const asked = name === 'help' ? (args[0] as string) : name
  const command = Object.hasOwn(commands, asked) ? commands[asked] : undefined
  if (command === undefined) return told(`there is no command '${asked}'\n\n${overview(commands)}`, MISUSED)
  if (name === 'help' || asksForHelp(args)) return said(command.usage)
  try {
    return await command.run([...args])
  } catch (error) {
    if (error instanceof SluiceError && OF_THE_SERVER.includes(error.code)) return told(error.message, FAILED)
    if (error instanceof SluiceError) return misused(asked, error.message)
    throw error
  }
}

export function said(text: string): number {
  console.log(text)
  return DONE
}

/** The error, on standard error. */
export function told(reason: string, code: number): number {
  console.error(`sluice: ${reason}`)
  return code
}

export function misused(command: string, reason: string): number {
  return told(`${reason}\n\nsluice ${command} --help says what there is.`, MISUSED)
}

function overview(commands: Commands): string {
  const names = Object.keys(commands)
  const width = Math.max(...names.map((name) => name.length))
  const lines = names.map((name) => `  sluice ${name.padEnd(width)}  ${commands[name]?.summary}`)
  return [
    `Sluice ${VERSION}: a rate limiter.`,
    '',
    ...lines,
    '',
    'sluice COMMAND --help says more; sluice --version.',
    '',
    EXIT_CODES,
  ].join('\n')
}

/** Not behind `--`, where everything is a value. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}
