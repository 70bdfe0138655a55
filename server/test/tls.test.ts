/** TLS on both ports, with real certificates, and files that change while the service runs. */
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type RequestOptions, request } from 'node:https'
import { connect as connectPlain, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { type Client, credentials } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { rateLimitService } from '../src/grpc/server.ts'
import type { ServiceOptions } from '../src/service.ts'
import { Tls, tlsFrom } from '../src/tls.ts'
import { shouldRateLimit } from './support/grpc.ts'
import { type ServiceProcess, startedProcess } from './support/process.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const path = (name: string) => fileURLToPath(new URL(`./support/certificates/${name}`, import.meta.url))
const pem = (name: string) => readFileSync(path(name))
const CA = pem('ca.pem')
const EDGE = `${CONFIG}domains:\n  edge: { descriptors: [{ key: ip, limit: { type: gcra, rate: 1/s, burst: 9 } }] }\n`
const ASK = { domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: '1.1.1.1' }] }] }

interface Identity {
  readonly cert?: Buffer
  readonly key?: Buffer
}

const identity = (name: string): Identity => ({ cert: pem(`${name}.pem`), key: pem(`${name}.key`) })

let service: TestService | undefined

afterEach(async () => {
  if (service === undefined) return
  await service.stop(0)
  expectNoFailure(service)
  service = undefined
})

async function start(tls: Tls, options: Partial<ServiceOptions> = {}): Promise<TestService> {
  service = await serviceOn(EDGE, undefined, undefined, { tls, ...options })
  return service
}

async function get(port: number, options: RequestOptions): Promise<{ status: number | undefined; subject: string }> {
  const sent = request({ host: '127.0.0.1', port, path: '/healthz', ca: CA, agent: new Agent({ maxCachedSessions: 0 }), ...options }).end()
  const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
  const subject = (response.socket as import('node:tls').TLSSocket).getPeerCertificate().subject.CN as string
  response.resume()
  return { status: response.statusCode, subject }
}

/** What gRPC answers, and whose certificate it was. */
async function asked(port: number, { cert, key }: Identity = {}): Promise<string> {
  const client: Client = new (rateLimitService())(`127.0.0.1:${port}`, credentials.createSsl(CA, key ?? null, cert ?? null))
  try {
    return (await shouldRateLimit(client, ASK)).overall_code
  } finally {
    client.close()
  }
}

async function subjectAt(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, ca: CA, ALPNProtocols: ['h2'] })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return CN as string
}

const files = { cert: path('server.pem'), key: path('server.key') }

test('both ports speak TLS, and nothing else', async () => {
  const { httpPort, grpcPort } = await start(new Tls({ ...files, clientCa: undefined }))
  expect(await get(httpPort, {})).toEqual({ status: 200, subject: 'server' })
  expect(await asked(grpcPort)).toBe('OK')
  expect(await subjectAt(grpcPort)).toBe('server')
  await expect(fetch(`http://127.0.0.1:${httpPort}/healthz`)).rejects.toThrow()
  await expect(get(httpPort, { ca: pem('stranger.pem') })).rejects.toThrow()
  // Below TLS 1.2 nobody agrees.
  const old = connect({ host: '127.0.0.1', port: httpPort, ca: CA, maxVersion: 'TLSv1.1' })
  await expect(once(old, 'secureConnect')).rejects.toThrow()
})

test('with the certificate of an authority, clients must show one that it has signed; supervisors need none at a port of their own', async () => {
  const { httpPort, grpcPort, healthPort } = await start(new Tls({ ...files, clientCa: path('ca.pem') }), { healthPort: 0 })
  expect((await get(httpPort, identity('client'))).status).toBe(200)
  expect(await asked(grpcPort, identity('client'))).toBe('OK')
  for (const wrong of [{}, identity('stranger')]) {
    await expect(get(httpPort, wrong)).rejects.toThrow()
    await expect(asked(grpcPort, wrong)).rejects.toThrow(/UNAVAILABLE/)
  }
  const health = `http://127.0.0.1:${healthPort}`
  for (const path of ['/healthz', '/readyz', '/metrics']) expect((await fetch(health + path)).status).toBe(200)
  for (const path of ['/', '/v1/limiters', '/v1/live', '/v1/limiters/api/keys/u1']) expect((await fetch(health + path)).status).toBe(404)
})

test('connections that never agree on keys make room for those that do', async () => {
  const { httpPort } = await start(new Tls({ ...files, clientCa: undefined }), { httpBounds: { maxConnections: 5 } })
  const silent: Socket[] = []
  for (let k = 0; k < 20; k++) {
    const socket = connectPlain(httpPort, '127.0.0.1').on('error', () => undefined)
    await once(socket, 'connect')
    silent.push(socket)
  }
  for (let k = 0; k < 10; k++) expect((await get(httpPort, {})).status).toBe(200)
  for (const socket of silent) socket.destroy()
})

describe('files', () => {
  let folder: string
  let built: ServiceProcess | undefined

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
    put('server')
  })

  afterEach(async () => {
    built?.process.kill('SIGKILL')
    await built?.ended
    built = undefined
    rmSync(folder, { recursive: true })
  })

  function put(name: string): void {
    copyFileSync(path(`${name}.pem`), join(folder, 'tls.pem'))
    copyFileSync(path(`${name}.key`), join(folder, 'tls.key'))
  }

  test('that change are taken up by both ports; such that do not fit each other are not', async () => {
    built = await startedProcess('--tls-cert', join(folder, 'tls.pem'), '--tls-key', join(folder, 'tls.key'))
    const { httpPort, grpcPort } = built
    expect([await subjectAt(grpcPort), (await get(httpPort, {})).subject]).toEqual(['server', 'server'])
    writeFileSync(join(folder, 'tls.key'), pem('next-server.key'))
    expect(await built.line('the new certificate cannot be used')).toContain('cannot be used')
    expect([await subjectAt(grpcPort), (await get(httpPort, {})).subject]).toEqual(['server', 'server'])
    put('next-server')
    expect(JSON.parse(await built.line('the certificate was reloaded'))).toMatchObject({ validTo: expect.stringMatching(/GMT$/) })
    expect([await subjectAt(grpcPort), (await get(httpPort, {})).subject]).toEqual(['next-server', 'next-server'])
    expect(await asked(grpcPort)).toBe('OK')
  })

  test('that are wrong are refused at the start, with the reason', () => {
    const cert = join(folder, 'tls.pem')
    expect(() => tlsFrom(cert, undefined, undefined)).toThrow('--tls-cert and --tls-key go together')
    expect(() => tlsFrom(undefined, undefined, path('ca.pem'))).toThrow('--tls-cert and --tls-key go together')
    expect(() => tlsFrom(cert, join(folder, 'none'), undefined)).toThrow(/^--tls-key .*none cannot be read/)
    expect(() => tlsFrom(cert, path('client.key'), undefined)).toThrow(/cannot be used: .*key values mismatch/)
    expect(() => tlsFrom(cert, join(folder, 'tls.key'), path('client.key'))).toThrow(/cannot be used/)
    expect(tlsFrom(undefined, undefined, undefined)).toBeUndefined()
  })
})
