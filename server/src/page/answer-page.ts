/** The page over HTTP. */
import type { IncomingMessage } from 'node:http'
import { BadRequest } from '../http/problem.ts'
import type { Reply } from '../http/routes.ts'
import { ENCODINGS, type Encoding, type Page, type PageFile } from './page.ts'

/** Nothing from elsewhere is loaded, run or sent to, and nobody shows the page inside another. */
const GUARDS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

/** `page` is undefined where it was turned off, and empty where it was not built. */
export async function answerPage(page: Page | undefined, path: string, { headers }: IncomingMessage): Promise<Reply> {
  const file = page?.get(path)
  if (file === undefined) throw notThere(page, path)
  const { etag, type, cacheControl } = file
  const encoding = encodingFor(file, headers['accept-encoding'])
  const told = { ...GUARDS, etag, 'cache-control': cacheControl, vary: 'accept-encoding' }
  if (isKnown(etag, headers['if-none-match'])) return { status: 304, body: undefined, type, headers: told }
  if (encoding === undefined) return { status: 200, body: file.body, type, headers: told }
  return { status: 200, body: await file.compressed(encoding), type, headers: { ...told, 'content-encoding': encoding } }
}

export function nothingAt(path: string): BadRequest {
  return new BadRequest(404, 'PATH', `there is nothing at ${path.slice(0, 100)}: /openapi.json says what there is`)
}

function notThere(page: Page | undefined, path: string): BadRequest {
  if (page?.size !== 0) return nothingAt(path)
  return new BadRequest(404, 'PAGE', 'the page is not built: npm run build:playground builds it, before the service is started')
}

function isKnown(etag: string, ifNoneMatch = ''): boolean {
  return ifNoneMatch.split(',').some((known) => known.trim() === etag || known.trim() === '*')
}

/** Undefined: as it is. */
function encodingFor({ isCompressible }: PageFile, acceptEncoding = ''): Encoding | undefined {
  if (!isCompressible) return undefined
  const accepted = acceptEncoding.split(',').filter((each) => !/;\s*q=0(\.0*)?\s*$/.test(each))
  const names = accepted.map((each) => each.split(';')[0]?.trim().toLowerCase())
  return ENCODINGS.find((encoding) => names.includes(encoding))
}
