// What keys hold before they are called: a sliding window a count in each of its slots, a log so
// many entries, the others what one call leaves. One key is filled, and then copied to the names of
// all others by the server, which takes a fraction of a second for thousands of logs.
import { createLimiter } from '../../dist/index.js'
import { fakeClock } from '../../dist/testing/index.js'
import { ENTRIES, SLOTS } from './limits.mjs'

/** The key that the others are copies of. */
export const TEMPLATE = 'template'

/**
 * At which times a key was called before, the last of them now. Undefined: it is called once, like
 * any other.
 */
export function timesHeld(algorithm, { window }) {
  const nowMs = Date.now()
  if (algorithm === 'slidingWindow') return Array.from({ length: SLOTS }, (_, k) => nowMs - (SLOTS - 1 - k) * (window.ms / SLOTS))
  if (algorithm === 'slidingLog') return Array.from({ length: ENTRIES }, (_, k) => nowMs - (ENTRIES - 1 - k))
  return undefined
}

/** Calls a limiter at these times, one decision of cost 1 each, through a clock of our own. */
export async function callAt(timesMs, key, limits, options) {
  const clock = fakeClock(timesMs[0])
  const limiter = createLimiter(limits, { ...options, clock })
  for (const ms of timesMs) {
    clock.setMs(ms)
    const { allowed } = await limiter.consume(key)
    if (!allowed) throw new Error(`a key that is filled with ${timesMs.length} was refused`)
  }
  limiter.close()
}

const COPY = `
local names = redis.call('KEYS', '*' .. ARGV[1] .. '*')
for _, name in ipairs(names) do
  local before, after = name:match('^(.-)' .. ARGV[1] .. '(.*)$')
  for k = 0, ARGV[2] - 1 do redis.call('COPY', name, before .. ARGV[3] .. k .. after, 'REPLACE') end
end
return #names`

/**
 * Makes `prefix + 0`, `prefix + 1` and so on hold what the template holds, with its time to live,
 * in whatever Redis keys it stands.
 */
export async function copyTemplate(send, prefix, count) {
  const found = await send('EVAL', COPY, '0', TEMPLATE, `${count}`, prefix)
  if (found === 0) throw new Error('there is no template to copy')
}
