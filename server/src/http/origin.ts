/**
 * Requests that a page of another site sends through the browser of a user that can reach the
 * service.
 *
 * A browser says where a request comes from: `Sec-Fetch-Site`, or, to hosts that it does not trust,
 * `Origin`. Programs that are no browsers send neither. And a page can have the name of its own
 * host lead to this machine (DNS rebinding): then it is of the same origin, but the name is not one
 * of this machine's. So a service that listens on this machine only answers to no other names,
 * unless it was told some.
 */
import type { IncomingMessage } from 'node:http'
import { BadRequest } from './problem.ts'

const LOCAL = /^(localhost|[\d.]+|\[[\da-f:.]+\]|.+\.localhost)(:\d*)?$/i

/** Throws if a page of another origin has sent it. Links to the service may stand anywhere. */
export function checkOrigin({ method, headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site']
  const { origin } = headers
  if (site === undefined ? origin === undefined || hostOf(origin) === headers.host : site === 'same-origin' || site === 'none') return
  const isLink = headers['sec-fetch-mode'] === 'navigate' && (method === 'GET' || method === 'HEAD')
  if (isLink) return
  throw new BadRequest(403, 'ORIGIN', `a page of another origin ${JSON.stringify(origin ?? site)} may not send requests here`)
}

/** Throws if it was sent to a name that is not ours. `names` is undefined where every name is. */
export function checkHost(names: readonly string[] | undefined, { headers }: IncomingMessage): void {
  const { host } = headers
  if (names === undefined || host === undefined || LOCAL.test(host)) return
  const name = host.replace(/:\d*$/, '')
  if (names.includes(name.toLowerCase())) return
  const rule = 'must be an address, localhost or a name given by --allow-host'
  throw new BadRequest(403, 'HOST', `host ${JSON.stringify(name.slice(0, 100))} ${rule}`)
}

/** Whether only this machine can reach what listens there. */
export function isLocal(listensOn: string): boolean {
  return /^(127\.[\d.]+|::1|localhost)$/.test(listensOn)
}

/** The names that are answered to, apart from addresses and localhost; undefined: all. */
export function namesFor(listensOn: string, allowed: readonly string[]): readonly string[] | undefined {
  return !isLocal(listensOn) && allowed.length === 0 ? undefined : allowed.map((name) => name.toLowerCase())
}

function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(origin)?.[1]
}
