/** The configuration file while the service runs. A bad one changes nothing. */
import { readFileSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { ConfigError, type ServiceConfig } from '../config/config.ts'
import { readConfig } from '../config/read.ts'
import type { Changes, Limiters } from './limiters.ts'

const SETTLED_MS = 50

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
  #soon: ReturnType<typeof setTimeout> | undefined

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

  /** Soon, and once: a file that is being written says so several times, and is empty in between. */
  #reloadSoon(): void {
    clearTimeout(this.#soon)
    this.#soon = setTimeout(() => this.reload(), SETTLED_MS)
  }

  /** The folder is watched and not the file: editors and Kubernetes put another file in its place. */
  watch(): void {
    const watcher = watch(dirname(this.#file), { persistent: false }, (_event, name) => {
      // What Kubernetes swaps is a link beside it.
      if (name === null || name === basename(this.#file) || name.startsWith('..')) this.#reloadSoon()
    })
    watcher.on('error', (error) => this.#onReload({ result: 'refused', reason: `${this.#file} is no longer watched: ${error.message}` }))
    this.#stop = () => watcher.close()
  }

  close(): void {
    clearTimeout(this.#soon)
    this.#stop()
  }
}

function reasonOf(error: unknown, file: string): string {
  if (error instanceof ConfigError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  return `${file} cannot be read: ${REASONS[code ?? ''] ?? message}`
}
