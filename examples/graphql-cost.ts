// GraphQL: a query costs what it may fetch, not one request. The cost is found from the query
// before anything runs.
import { buildSchema, graphql, parse, visit } from 'graphql'
import { createLimiter, tokenBucket } from 'sluice'
import { byHeader, rateLimit } from 'sluice/fetch'
import { fakeClock } from 'sluice/testing'

const schema = buildSchema('type Book { title: String author: String } type Query { books(first: Int = 1): [Book] }')
const rootValue = { books: ({ first }: { first: number }) => Array.from({ length: first }, (_, k) => ({ title: `book ${k}` })) }

/** One for every field, times as many as the lists around it may hold. */
function costOf(query: string): number {
  let cost = 0
  const factors = [1]
  visit(parse(query), {
    Field: {
      enter({ arguments: args = [] }) {
        const factor = factors.at(-1) as number
        cost += factor
        const first = args.find(({ name }) => name.value === 'first')?.value
        factors.push(factor * (first?.kind === 'IntValue' ? Number(first.value) : 1))
      },
      leave: () => void factors.pop(),
    },
  })
  return cost
}

const limiter = createLimiter(tokenBucket({ capacity: 100, refill: '10/s' }), { clock: fakeClock() })
const limited = rateLimit({
  limiter,
  key: byHeader('x-api-key'),
  cost: async (request: Request) => costOf(await request.clone().text()),
})
const handler = limited(async (request: Request) => Response.json(await graphql({ schema, rootValue, source: await request.text() })))

for (const query of [
  '{ books { title } }',
  '{ books(first: 40) { title author } }',
  '{ books(first: 20) { title } }',
  '{ books(first: 99) { title author } }',
]) {
  const request = new Request('https://api.example/graphql', { method: 'POST', body: query, headers: { 'x-api-key': 'ann' } })
  const { status, headers } = await handler(request)
  console.log(status, `cost ${costOf(query)},`, headers.get('ratelimit'), `retry after: ${headers.get('retry-after') ?? 'no'}`)
}

// prints:
// 200 cost 2, "default";r=98;t=1 retry after: no
// 200 cost 81, "default";r=17;t=9 retry after: no
// 429 cost 21, "default";r=17;t=1 retry after: 1
// 429 cost 199, "default";r=17;t=9 retry after: no
