/**
 * A client that holds every answer against the OpenAPI document, and remembers what it has seen.
 */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'vitest'
import { openApi } from '../../src/http/openapi.ts'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: an answer is whatever the test expects of it.
  readonly body: any
}

type Operation = { readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { schema: object }>> }>> }

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajv.addSchema({ $id: 'api', components: openApi.components })
const validators = new Map<string, ValidateFunction>()
const paths = openApi.paths as unknown as Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Method, path and status of every answer so far. */
export const seen = new Set<string>()

export const PAGE_PATHS = ['/', '/assets/{file}']
export const LIVE_PATHS = ['/v1/live']
/** All that have no tests of their own. */
export const OTHER_PATHS = Object.keys(paths).filter((path) => ![...PAGE_PATHS, ...LIVE_PATHS].includes(path))

/** What the document says of these paths was seen, and nothing else. */
export function expectAllSeen(of: readonly string[]): void {
  const promised = of.flatMap((path) =>
    Object.entries(paths[path] ?? {}).flatMap(([method, { responses }]) =>
      Object.keys(responses).map((status) => `${method} ${path} ${status}`),
    ),
  )
  expect([...seen].filter((id) => of.includes(id.split(' ')[1] as string)).sort()).toEqual(promised.sort())
}

/** Every operation of these paths, sent to the name of another host, is refused. */
export async function expectHostGuarded(base: string, of: readonly string[]): Promise<void> {
  for (const path of of) {
    for (const method of Object.keys(paths[path] ?? {})) {
      const { status, body } = await sent(base, method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x'), { host: 'rebound.example:80' })
      expect({ status, code: body.code }, `${method} ${path}`).toEqual({ status: 403, code: 'HOST' })
    }
  }
}

/** With headers that fetch would not send. */
export async function sent(base: string, method: string, path: string, headers: OutgoingHttpHeaders, body = ''): Promise<Reply> {
  const request = httpRequest(base + path, { method, headers }).end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const pieces = await response.toArray()
  const told = new Headers(response.headers as Record<string, string>)
  return checked(method, path, response.statusCode as number, told, Buffer.concat(pieces).toString())
}

export async function call(base: string, method: string, path: string, body?: unknown, options: RequestInit = {}): Promise<Reply> {
  const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  const response = await fetch(base + path, { method, ...init, ...options })
  return checked(method, path, response.status, response.headers, await response.text())
}

export function checked(method: string, path: string, status: number, headers: Headers, text: string): Reply {
  const type = (headers.get('content-type') ?? '').split(';')[0] as string
  const body = /json$/.test(type) ? JSON.parse(text) : text
  const template = templateOf(path)
  const operation = template === undefined ? undefined : paths[template]?.[method.toLowerCase()]
  // What is at no path, or not done with it, is a problem as any other.
  if (operation === undefined) expectSchema('Problem', body)
  else {
    const id = `${method.toLowerCase()} ${template} ${status}`
    seen.add(id)
    expectDescribed(id, operation, type, body)
  }
  return { status, headers, body }
}

function expectDescribed(id: string, { responses }: Operation, type: string, body: unknown): void {
  const response = responses[id.split(' ')[2] as string]
  expect(response, `${id} is not in the document: ${JSON.stringify(body)}`).toBeDefined()
  if (response?.content === undefined) {
    expect(body).toBe('')
    return
  }
  if (Object.hasOwn(response.content, '*/*')) return
  expect(Object.keys(response.content), id).toEqual([type])
  expectValid(id, JSON.parse(JSON.stringify(response.content[type]?.schema).replaceAll('"#/', '"api#/')), body)
}

export function expectSchema(name: string, body: unknown): void {
  expectValid(name, { $ref: `api#/components/schemas/${name}` }, body)
}

function expectValid(id: string, schema: object, body: unknown): void {
  const validate = validators.get(id) ?? ajv.compile(schema)
  validators.set(id, validate)
  expect(validate(body), `${id}: ${JSON.stringify(validate.errors)} ${JSON.stringify(body)}`).toBe(true)
}

function templateOf(path: string): string | undefined {
  const parts = (path.split('?')[0] as string).split('/')
  return Object.keys(paths).find((template) => {
    const wanted = template.split('/')
    return wanted.length === parts.length && wanted.every((part, k) => part.startsWith('{') || part === parts[k])
  })
}
