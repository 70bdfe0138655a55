// The verdicts of earlier runs, so that a run that was stopped goes on where it was, and one after
// a new test judges only the survivors anew.
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isShownBy } from './suites.mjs'

/** A verdict holds only as long as the judge who gave it stays what it is. */
const JUDGE_FILES = ['judge.mjs', 'test-api.mjs', 'worker.mjs'].map((name) => readFileSync(new URL(name, import.meta.url), 'utf8'))
const JUDGE_HASH = hashOfText(JUDGE_FILES.map(withoutComments).join('\n'))

export class Verdicts {
  #path
  #root
  #sources
  #sourcesHash = new Map()
  #helpers
  #hashes = new Map()
  #known = new Map()

  /**
   * `path` is where verdicts are kept, `root` the copy that is judged, and `sources` the files that
   * mutants are made from.
   */
  constructor(path, root, sources) {
    this.#path = path
    this.#root = root
    this.#sources = sources
    this.#helpers = this.#hashOf(helpersIn(root))
    mkdirSync(dirname(path), { recursive: true })
    for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) this.#learn(line)
  }

  /** How a mutant ended. It stays killed when tests are added. */
  endOf(mutant) {
    return this.#known.get(this.#key(mutant))
  }

  keepEnd(mutant, verdict) {
    this.#keep(this.#key(mutant), verdict)
  }

  /** Whether a mutant has passed a test. That holds only as long as the test stays what it is. */
  hasPassed(mutant, test) {
    return this.#known.has(this.#keyOfPass(mutant, test))
  }

  /** How long that was computed, or undefined. */
  passedInMs(mutant, test) {
    return this.#known.get(this.#keyOfPass(mutant, test))?.computedMs
  }

  keepPass(mutant, test, computedMs) {
    this.#keep(this.#keyOfPass(mutant, test), { computedMs })
  }

  #keyOfPass(mutant, { path, only, traces }) {
    if (!this.#hashes.has(path)) this.#hashes.set(path, this.#hashOf([path]))
    return this.#key(mutant, path, only, traces, this.#helpers, this.#hashes.get(path))
  }

  #key({ id, file }, ...parts) {
    if (!this.#sourcesHash.has(file)) this.#sourcesHash.set(file, this.#hashOf(this.#sources.filter((source) => concerns(source, file))))
    return hashOfText(JSON.stringify([JUDGE_HASH, this.#sourcesHash.get(file), id, ...parts]))
  }

  #hashOf(files) {
    return hashOfText(files.map((file) => `${file}\n${withoutComments(readFileSync(join(this.#root, file), 'utf8'))}`).join('\n'))
  }

  #keep(key, verdict) {
    this.#known.set(key, verdict)
    appendFileSync(this.#path, `${JSON.stringify([key, verdict])}\n`)
  }

  /** A run that was killed may have left half a line. */
  #learn(line) {
    try {
      this.#known.set(...JSON.parse(line))
    } catch {}
  }
}

/**
 * Whether what becomes of a mutant of `file` may change with `source`. TypeScript is judged by
 * itself, and by the algorithms that show it alone; Lua is compared with all of them. Without a
 * file: the code as it is, which everything concerns.
 */
function concerns(source, file = '.lua') {
  if (file.endsWith('.lua')) return true
  const folder = /algorithms\/([^/]+)\//.exec(source)?.[1]
  return source.endsWith('.ts') && (folder === undefined || isShownBy(file, folder))
}

/** What the tests of the algorithms are made of besides themselves. */
function helpersIn(root) {
  const files = ['test/model', 'test/conformance', 'test/lua', 'test/lua/fixtures', 'test/support'].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
  )
  return files.filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts')).sort()
}

/** Lines that are nothing but comment may change without changing a verdict. */
function withoutComments(text) {
  return text.replace(/^ *(\/\*\*|\*|\/\/|--).*\n/gm, '')
}

function hashOfText(text) {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
