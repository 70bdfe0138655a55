/** The configuration file while the service runs. A bad one changes nothing. */
import { readFileSync } from 'node:fs'
import { ConfigError, type ServiceConfig } from '../config/config.ts'
import { readConfig } from '../config/read.ts'
import { watchFiles } from '../files.ts'
import type { Changes, Limiters } from './limiters.ts'

/** What the usual errors of the system mean. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this process may not read it',
}

export interface ReloadReport {
  readonly result: 'ok' | 'refused'
  /** Why it was refused: every mistake with its place. */
  readonly reason: string | undefined
  /** What it changed. */
  readonly changes?: Changes
}

export function loadConfig(file: string): { config: ServiceConfig; text: string } {
  const text = textOf(file)
  return { config: readConfig(text, file), text }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(reasonOf(error, file), { cause: error })
  }
}

export class ConfigFile {
  readonly #file: string
  readonly #limiters: Limiters
  readonly #onReload: (report: ReloadReport) => void
  #text: string
  #stop: () => void = () => undefined

  constructor(file: string, text: string, limiters: Limiters, onReload: (report: ReloadReport) => void) {
    this.#file = file
    this.#text = text
    this.#limiters = limiters
    this.#onReload = onReload
  }

  /** Reads the file again, unless it says what it said before. */
  reload(): void {
    try {
      const text = readFileSync(this.#file, 'utf8')
      if (text === this.#text) return
      // Remembered though it may be bad: the same mistake need not be told twice.
      this.#text = text
      const changes = this.#limiters.use(readConfig(text, this.#file, this.#limiters))
      this.#onReload({ result: 'ok', reason: undefined, changes })
    } catch (error) {
      this.#onReload({ result: 'refused', reason: reasonOf(error, this.#file) })
    }
  }

  watch(): void {
    const isLost = (error: Error) => this.#onReload({ result: 'refused', reason: `${this.#file} is no longer watched: ${error.message}` })
    this.#stop = watchFiles([this.#file], () => this.reload(), isLost)
  }

  close(): void {
    this.#stop()
  }
}

function reasonOf(error: unknown, file: string): string {
  if (error instanceof ConfigError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  return `${file} cannot be read: ${REASONS[code ?? ''] ?? message}`
}
