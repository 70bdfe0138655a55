/**
 * The page as files in memory, by the path at which each is served. They are read once at the
 * start: whatever a path says, nothing but these can be answered.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'

/** Where a build has the files whose names change with what is in them. */
const HASHED = 'assets'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
}
const COMPRESSIBLE = /^text\/|json|svg/

const COMPRESS = { br: promisify<Buffer, Buffer>(brotliCompress), gzip: promisify<Buffer, Buffer>(gzip) }
export type Encoding = keyof typeof COMPRESS
export const ENCODINGS = Object.keys(COMPRESS) as readonly Encoding[]

export type Page = ReadonlyMap<string, PageFile>

export class PageFile {
  readonly body: Buffer
  readonly type: string
  /** Weak: the same for every encoding. */
  readonly etag: string
  readonly cacheControl: string
  readonly #compressed = new Map<Encoding, Promise<Buffer>>()

  constructor(body: Buffer, name: string, isHashed: boolean) {
    this.body = body
    this.type = TYPES[extname(name)] ?? 'application/octet-stream'
    this.etag = `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    this.cacheControl = isHashed ? 'public, max-age=31536000, immutable' : 'no-cache'
  }

  get isCompressible(): boolean {
    return COMPRESSIBLE.test(this.type)
  }

  /** Done once, when it is first asked for. */
  compressed(encoding: Encoding): Promise<Buffer> {
    const known = this.#compressed.get(encoding) ?? COMPRESS[encoding](this.body)
    this.#compressed.set(encoding, known)
    return known
  }
}

/** Empty if the page was not built. */
export function readPage(folder: string): Page {
  const files = new Map<string, PageFile>()
  if (!existsSync(join(folder, 'index.html'))) return files
  files.set('/', new PageFile(readFileSync(join(folder, 'index.html')), 'index.html', false))
  const hashed = join(folder, HASHED)
  if (!existsSync(hashed)) return files
  for (const entry of readdirSync(hashed, { withFileTypes: true })) {
    if (entry.isFile()) files.set(`/${HASHED}/${entry.name}`, new PageFile(readFileSync(join(hashed, entry.name)), entry.name, true))
  }
  return files
}
