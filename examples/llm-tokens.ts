// A model behind a quota of requests and of tokens per minute, decided as one. The cost of an
// answer is estimated before, and corrected after.
import { createLimiter, tokenBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const limiter = createLimiter(
  { requests: tokenBucket({ capacity: 60, refill: '60/min' }), tokens: tokenBucket({ capacity: 10_000, refill: '10000/min' }) },
  { clock: fakeClock() }, // in production: leave the clock out
)

/** Stands for the model: says how many tokens it really used. */
async function model(prompt: string): Promise<{ text: string; usedTokens: number }> {
  return { text: `about ${prompt}`, usedTokens: 700 }
}

async function ask(user: string, prompt: string, maxTokens: number): Promise<string> {
  // Four letters are about a token; the answer may be as long as it is allowed to be.
  const estimate = Math.ceil(prompt.length / 4) + maxTokens
  const decision = limiter.consume(user, { requests: 1, tokens: estimate })
  if (!decision.allowed) return `${decision.outcome} by ${decision.policy}: ${decision.retryAfterMs} ms`
  const { text, usedTokens } = await model(prompt)
  // Tokens of an estimate that was too high are given back. An answer that got longer is charged
  // the rest, also beyond the quota.
  decision.settle({ requests: 1, tokens: usedTokens })
  return `${text}: ${limiter.peek(user, 0).parts.tokens.remaining} tokens left`
}

console.log(await ask('ann', 'rivers', 4_000))
console.log(await ask('ann', 'locks and weirs', 9_000))
console.log(await ask('ann', 'sluices', 8_500))
console.log(await ask('ann', 'everything', 20_000))

// prints:
// about rivers: 9300 tokens left
// about locks and weirs: 8600 tokens left
// about sluices: 7900 tokens left
// impossible by tokens: Infinity ms
