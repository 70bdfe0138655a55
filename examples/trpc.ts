// tRPC: a middleware for procedures. Reading is cheap, writing is dear, and both count for the same
// user.
import { initTRPC, TRPCError } from '@trpc/server'
import { createLimiter, gcra } from 'sluice'
import { fakeClock } from 'sluice/testing'

// In production: leave the clock out.
const limiter = createLimiter(gcra({ rate: '1/s', burst: 6 }), { clock: fakeClock() })

const t = initTRPC.context<{ user: string }>().meta<{ cost: number }>().create()
const limited = t.procedure.use(({ ctx, meta, next }) => {
  const { allowed, retryAfterMs } = limiter.consume(ctx.user, meta?.cost ?? 1)
  if (allowed) return next()
  throw new TRPCError({ code: 'TOO_MANY_REQUESTS', message: `try again in ${retryAfterMs} ms` })
})
const router = t.router({
  read: limited.query(() => 'read'),
  write: limited.meta({ cost: 4 }).mutation(() => 'written'),
})

const ann = t.createCallerFactory(router)({ user: 'ann' })
for (const call of [ann.read, ann.write, ann.write, ann.read]) {
  console.log(await call().catch((error: TRPCError) => `${error.code}: ${error.message}`))
}

// prints:
// read
// written
// TOO_MANY_REQUESTS: try again in 3000 ms
// read
