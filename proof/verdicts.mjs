// What earlier runs have found, so that a run that was stopped goes on where it was, and one after a new test judges only the survivors anew.
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export class Verdicts {
  #path
  #root
  #sources
  #helpers
  #hashes = new Map()
  #known = new Map()

  /** `path` is where verdicts are kept, `root` the copy that is judged, and `sources` the files that mutants are made from. */
  constructor(path, root, sources) {
    this.#path = path
    this.#root = root
    this.#sources = this.#hashOf(sources)
    this.#helpers = this.#hashOf(helpersIn(root))
    mkdirSync(dirname(path), { recursive: true })
    for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) this.#learn(line)
  }

  /** How a mutant ended. Whatever tests are added, it stays killed. */
  endOf({ id }) {
    return this.#known.get(this.#key(id))
  }

  keepEnd({ id }, verdict) {
    this.#keep(this.#key(id), verdict)
  }

  /** In how many milliseconds a mutant has passed a test, or undefined. That holds only as long as the test stays what it is. */
  passedInMs({ id }, test) {
    return this.#known.get(this.#keyOfPass(id, test))?.ms
  }

  keepPass({ id }, test, ms) {
    this.#keep(this.#keyOfPass(id, test), { ms })
  }

  #keyOfPass(id, { path, only, traces }) {
    if (!this.#hashes.has(path)) this.#hashes.set(path, this.#hashOf([path]))
    return this.#key(id, path, only, traces, this.#helpers, this.#hashes.get(path))
  }

  #key(...parts) {
    return hashOfText(JSON.stringify([this.#sources, ...parts]))
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

/** What the tests of the algorithms are made of besides themselves. */
function helpersIn(root) {
  const files = ['test/model', 'test/conformance'].flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`))
  return files.filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts')).sort()
}

/** Lines that are nothing but comment may change without changing a verdict. */
function withoutComments(text) {
  return text.replace(/^ *(\/\*\*|\*|\/\/|--).*$/gm, '')
}

function hashOfText(text) {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
