// An answer of a language model as a stream, behind a limit of requests and of tokens. The estimate
// is made from the prompt; the usage that the provider reports at the end of its stream settles it;
// a client that hangs up is charged for what was streamed until then.
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, tokenBucket } from 'sluice'
import { rateLimit } from 'sluice/node'
import { fakeClock } from 'sluice/testing'

/**
 * Stands for the provider: server-sent events, one for each token, and at the end what was used. A
 * long story goes on until the client leaves.
 */
const provider = await listening(async (request, response) => {
  const prompt = new URL(request.url ?? '', 'http://provider').searchParams.get('prompt') ?? ''
  const words = prompt === 'a long story' ? ['Once', 'upon', 'a'] : ['Water', 'flows', 'down', 'hill']
  response.setHeader('content-type', 'text/event-stream')
  for (const word of words) response.write(`data: ${JSON.stringify({ delta: word })}\n\n`)
  if (prompt === 'a long story') await once(response, 'close')
  const used = prompt === 'think hard' ? 1_200 : tokensOf(prompt) + words.length
  response.end(`data: ${JSON.stringify({ usage: { total_tokens: used } })}\n\n`)
})

/** Four letters are about a token. */
function tokensOf(text: string): number {
  return Math.ceil(text.length / 4)
}

const limiter = createLimiter(
  { requests: tokenBucket({ capacity: 60, refill: '60/min' }), tokens: tokenBucket({ capacity: 1_000, refill: '1000/h' }) },
  { clock: fakeClock() }, // in production: leave the clock out, and share a store
)

/** The tokens that a request has used until now. */
type Asked = IncomingMessage & { used?: number }

const MAX_ANSWER_TOKENS = 300
const promptOf = ({ url }: Asked) => new URL(url ?? '', 'http://gateway').searchParams.get('prompt') ?? ''
const events = new EventEmitter()

const limited = rateLimit({
  limiter,
  key: (request: Asked) => String(request.headers['x-user']),
  cost: (request) => ({ requests: 1, tokens: tokensOf(promptOf(request)) + MAX_ANSWER_TOKENS }),
  settle({ aborted }, { used = 0 }) {
    setImmediate(() => events.emit('settled', `${aborted ? 'hung up' : 'answered'}, ${used} used`))
    return { requests: 1, tokens: used }
  },
})

/** Passes the stream on, and counts along. The provider's own count at the end replaces ours. */
const gateway = await listening(
  limited(async (request: Asked, response: ServerResponse) => {
    const prompt = promptOf(request)
    request.used = tokensOf(prompt)
    const client = new AbortController()
    response.once('close', () => client.abort())
    try {
      const answer = await fetch(`${provider.url}?prompt=${encodeURIComponent(prompt)}`, { signal: client.signal })
      for await (const event of eventsIn(answer)) {
        if (event.usage !== undefined) request.used = event.usage.total_tokens
        if (event.delta === undefined) continue
        request.used += 1
        response.write(`${event.delta} `)
      }
      response.end()
    } catch (error) {
      if (!client.signal.aborted) response.destroy(error as Error)
    }
  }),
)

interface ModelEvent {
  readonly delta?: string
  readonly usage?: { readonly total_tokens: number }
}

async function* eventsIn({ body }: Response): AsyncGenerator<ModelEvent> {
  let text = ''
  for await (const piece of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    const lines = (text + piece).split('\n\n')
    text = lines.pop() as string
    for (const line of lines) yield JSON.parse(line.replace(/^data: /, '')) as ModelEvent
  }
}

async function listening(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close }
}

/** Asks as a user would, and hangs up when so much of the answer has come. */
async function ask(prompt: string, enough = Number.POSITIVE_INFINITY): Promise<void> {
  const client = new AbortController()
  const settled = once(events, 'settled')
  const url = `${gateway.url}?prompt=${encodeURIComponent(prompt)}`
  const response = await fetch(url, { headers: { 'x-user': 'ann' }, signal: client.signal })
  if (!response.ok) return console.log(`${prompt}: ${response.status}, come back in ${response.headers.get('retry-after')} s`)
  let answer = ''
  for await (const piece of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    answer += piece
    if (answer.length >= enough) break
  }
  client.abort()
  const [how] = await settled
  const { requests, tokens } = limiter.peek('ann', 0).parts
  console.log(`${prompt}: ${answer.trim()} (${how}; ${requests.remaining} requests and ${tokens.remaining} tokens left)`)
}

await ask('why do rivers run')
await ask('a long story', 'Once upon a '.length)
await ask('think hard')
await ask('why do rivers run')
gateway.close()
provider.close()

// prints:
// why do rivers run: Water flows down hill (answered, 9 used; 59 requests and 991 tokens left)
// a long story: Once upon a (hung up, 6 used; 58 requests and 985 tokens left)
// think hard: Water flows down hill (answered, 1200 used; 57 requests and 0 tokens left)
// why do rivers run: 429, come back in 1872 s
