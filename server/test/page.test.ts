/** The page as the service answers it, over real sockets. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPage } from '../src/page/page.ts'
import { Tokens } from '../src/tokens.ts'
import { call, expectAllSeen, expectHostGuarded, PAGE_PATHS } from './support/client.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const HTML = `<!doctype html><title>Sluice</title>${'<p>water</p>'.repeat(100)}`
const SCRIPT = 'console.log(1)\n'.repeat(100)
const SECRET = 'not for you'
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

let folder: string
let service: TestService

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-page-'))
  const dist = join(folder, 'dist')
  mkdirSync(join(dist, 'assets', 'deeper'), { recursive: true })
  writeFileSync(join(folder, 'secret.txt'), SECRET)
  writeFileSync(join(dist, 'index.html'), HTML)
  writeFileSync(join(dist, 'assets', 'index-abc123.js'), SCRIPT)
  writeFileSync(join(dist, 'assets', 'logo-abc123.png'), PNG)
  writeFileSync(join(dist, 'assets', 'deeper', 'x.txt'), SECRET)
  symlinkSync(join(folder, 'secret.txt'), join(dist, 'assets', 'link.txt'))
  service = await serviceOn(CONFIG, undefined, new Tokens(['a-token-that-is-long-enough']), { page: readPage(dist) })
})

afterAll(async () => {
  await service.stop(0)
  rmSync(folder, { recursive: true })
  expectNoFailure(service)
})

interface Raw {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
}

/** The path as it is, and the bytes as they come. */
function raw(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const sent = request({ port: service.httpPort, host: '127.0.0.1', path, headers, method }, (response) => {
      response.toArray().then((pieces) => {
        resolve({ status: response.statusCode as number, headers: response.headers as Raw['headers'], bytes: Buffer.concat(pieces) })
      }, reject)
    })
    sent.on('error', reject).end()
  })
}

describe('the page', () => {
  test('is at /, and lets nothing in from elsewhere', async () => {
    const { body, headers } = await call(service.url, 'GET', '/')
    expect(body).toBe(HTML)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
  })

  test('has files that never change, each with its type', async () => {
    const script = await call(service.url, 'GET', '/assets/index-abc123.js')
    expect(script.body).toBe(SCRIPT)
    expect(Object.fromEntries(script.headers)).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    })
    const logo = await raw('/assets/logo-abc123.png', { 'accept-encoding': 'br, gzip' })
    expect(logo).toMatchObject({ status: 200, headers: { 'content-type': 'image/png' }, bytes: PNG })
    expect(logo.headers['content-encoding']).toBeUndefined()
  })

  test.each(['/', '/assets/index-abc123.js'])('%s is not sent to who has it', async (path) => {
    const { etag } = (await raw(path)).headers as { etag: string }
    for (const known of [etag, `"other", ${etag}`, '*']) {
      const { status, body, headers } = await call(service.url, 'GET', path, undefined, { headers: { 'if-none-match': known } })
      expect({ status, body, etag: headers.get('etag') }).toEqual({ status: 304, body: '', etag })
    }
    expect((await call(service.url, 'GET', path, undefined, { headers: { 'if-none-match': 'W/"other"' } })).status).toBe(200)
  })

  test.each([
    ['gzip, deflate, br', 'br', brotliDecompressSync],
    ['GZIP;q=0.5', 'gzip', gunzipSync],
    ['br;q=0, gzip', 'gzip', gunzipSync],
    ['br;q=0.0', undefined, (bytes: Buffer) => bytes],
    ['', undefined, (bytes: Buffer) => bytes],
  ])('to who accepts %j it is sent as %s', async (accepted, encoding, opened) => {
    for (let again = 0; again < 2; again++) {
      const { headers, bytes } = await raw('/', { 'accept-encoding': accepted })
      expect(headers).toMatchObject({ vary: 'accept-encoding', 'content-length': `${bytes.length}` })
      expect(headers['content-encoding']).toBe(encoding)
      expect(opened(bytes).toString()).toBe(HTML)
    }
  })

  test('is there for HEAD, without a body', async () => {
    const { status, headers, bytes } = await raw('/', {}, 'HEAD')
    expect({ status, length: headers['content-length'], sent: bytes.length }).toEqual({ status: 200, length: `${HTML.length}`, sent: 0 })
  })
})

describe('nothing else is sent', () => {
  test.each([
    '/assets/',
    '/assets/none.js',
    '/assets/link.txt',
    '/assets/deeper/x.txt',
    '/index.html',
    '/assets/../../secret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/assets/..%5c..%5csecret.txt',
    '/assets/%2e%2e/%2e%2e/secret.txt',
    '//secret.txt',
    '/assets/index-abc123.js%00.png',
    '/assets/__proto__',
  ])('%s', async (path) => {
    const { status, bytes } = await raw(path)
    expect(status).toBe(404)
    expect(bytes.toString()).not.toContain(SECRET)
  })

  test('for any path', async () => {
    const part = fc.constantFrom(
      '..',
      '.',
      '',
      '%2e%2e',
      '%2f',
      '%5c',
      'assets',
      'dist',
      'secret.txt',
      'index.html',
      'link.txt',
      'deeper',
      'x.txt',
    )
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 6 }), async (parts) => {
        const { bytes } = await raw(`/${parts.join('/')}`)
        expect(bytes.toString()).not.toContain(SECRET)
      }),
      { numRuns: 300, seed: 10 },
    )
  })
})

test('a page that was not built says how to, and one that was turned off is not there', async () => {
  const bare = await serviceOn(CONFIG, undefined, undefined, { page: readPage(join(folder, 'nowhere')) })
  expect(await call(bare.url, 'GET', '/')).toMatchObject({
    status: 404,
    body: { code: 'PAGE', detail: 'the page is not built: npm run build:playground builds it, before the service is started' },
  })
  await bare.stop(0)
  const off = await serviceOn()
  for (const path of ['/', '/assets/index-abc123.js']) {
    expect(await call(off.url, 'GET', path)).toMatchObject({ status: 404, body: { code: 'PATH' } })
  }
  await off.stop(0)
})

// The last one: the others have to be run before.
test('everything in the document was seen', async () => {
  await expectHostGuarded(service.url, PAGE_PATHS)
  expectAllSeen(PAGE_PATHS)
})
