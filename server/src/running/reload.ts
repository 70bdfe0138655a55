/** The configuration files while the service runs. A bad one changes nothing. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceConfig } from '../config/config.ts'
import { type ConfigText, readConfigs } from '../config/read.ts'
import { isFolder, watchFiles } from '../files.ts'
import type { Changes, Limiters } from './limiters.ts'

/** Common errors of the system, in words. */
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

export interface LoadedConfig {
  readonly config: ServiceConfig
  readonly texts: readonly ConfigText[]
}

/**
 * Of files, and of folders with files. `isShared`: whether others share the store that they are
 * for; undefined if that is not known.
 */
export function loadConfig(paths: readonly string[], isShared?: boolean): LoadedConfig {
  const texts = textsIn(paths)
  return { config: readConfigs(texts, undefined, isShared), texts }
}

function textsIn(paths: readonly string[]): ConfigText[] {
  return paths.flatMap((path) => reading(path, () => filesIn(path))).map((file) => ({ file, text: reading(file, () => textOf(file)) }))
}

function textOf(file: string): string {
  return readFileSync(file, 'utf8')
}

/**
 * A folder stands for its YAML and JSON files, but for hidden ones, in the order of their names.
 */
function filesIn(path: string): string[] {
  if (!isFolder(path)) return [path]
  const names = readdirSync(path).filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name))
  if (names.length === 0) throw new Error('there is no .yaml, .yml or .json file in it')
  return names.sort().map((name) => join(path, name))
}

export class ConfigFiles {
  readonly #paths: readonly string[]
  readonly #limiters: Limiters
  readonly #onReload: (report: ReloadReport) => void
  #seen: string
  #stop: () => void = () => undefined

  /** `texts` is what the service began with. */
  constructor(paths: readonly string[], texts: readonly ConfigText[], limiters: Limiters, onReload: (report: ReloadReport) => void) {
    this.#paths = paths
    this.#seen = JSON.stringify(texts)
    this.#limiters = limiters
    this.#onReload = onReload
  }

  /** Reads the files again, unless they say what they said before. */
  reload(): void {
    try {
      const texts = textsIn(this.#paths)
      const seen = JSON.stringify(texts)
      if (seen === this.#seen) return
      // Remembered though it may be bad: the same mistake need not be told twice.
      this.#seen = seen
      const changes = this.#limiters.use(readConfigs(texts, this.#limiters))
      this.#onReload({ result: 'ok', reason: undefined, changes })
    } catch (error) {
      this.#onReload({ result: 'refused', reason: (error as Error).message })
    }
  }

  watch(): void {
    const isLost = (error: Error) =>
      this.#onReload({ result: 'refused', reason: `${this.#paths.join(', ')}: no longer watched: ${error.message}` })
    this.#stop = watchFiles(this.#paths, () => this.reload(), isLost)
  }

  close(): void {
    this.#stop()
  }
}

function reading<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(`${path} cannot be read: ${REASONS[code ?? ''] ?? message}`, { cause: error })
  }
}
