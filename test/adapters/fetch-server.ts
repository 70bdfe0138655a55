/**
 * Serves the application through the fetch adapter, in Bun or in Deno, and takes commands on a
 * second port. Started by remote.ts; prints its two ports as JSON.
 */
import { rateLimit, rateLimitOf } from '../../src/adapters/fetch.ts'
import { App } from './app.ts'
import type { SetupName } from './setups.ts'

type Handler = (request: Request, info: never) => Response | Promise<Response>
interface Listening {
  readonly port: number
}
interface BunLike {
  serve(options: { port: number; hostname: string; fetch: Handler }): Listening
}
interface DenoLike {
  serve(options: { port: number; hostname: string; tcpBacklog: number; onListen(): void }, handler: Handler): { readonly addr: Listening }
}

const { Bun, Deno } = globalThis as unknown as { Bun?: BunLike; Deno?: DenoLike }

function listen(handler: Handler): number {
  if (Bun !== undefined) return Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: handler }).port
  return (Deno as DenoLike).serve({ port: 0, hostname: '127.0.0.1', tcpBacklog: 2_048, onListen() {} }, handler).addr.port
}

let app: App
let limited: Handler = () => new Response('no setup yet', { status: 500 })

function setUp(setup: SetupName): void {
  app = new App(setup, (request: Request, name) => request.headers.get(name) ?? undefined)
  const handle = async (request: Request, _info: never) => {
    if (request.headers.get('x-stream')) return streamed()
    const { status, body } = await app.handle((name) => request.headers.get(name), rateLimitOf(request), request.signal)
    return new Response(body, { status })
  }
  limited = rateLimit(app.options)(app.behind === undefined ? handle : rateLimit(app.behind)(handle))
}

/** One piece now, the rest when it is told to end. */
function streamed(): Response {
  app.reached += 1
  const start = (controller: ReadableStreamDefaultController) => {
    controller.enqueue(new TextEncoder().encode('piece'))
    app.open.add(() => controller.close())
  }
  return new Response(new ReadableStream({ start }))
}

/** Runtimes answer an error with a page of their own and print it; the tests want neither. */
const server = listen(async (request, info) => {
  try {
    return await limited(request, info)
  } catch {
    return new Response('failed', { status: 500 })
  }
})

const control = listen((request) => {
  const { searchParams } = new URL(request.url)
  const [command, argument] = [searchParams.get('command') as string, searchParams.get('argument') as string]
  const answer = command === 'setup' ? setUp(argument as SetupName) : app.do(command, argument)
  return Response.json(answer ?? null)
})

console.log(JSON.stringify({ server, control }))
