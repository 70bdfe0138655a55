/** The arithmetic of one decision, in words. */
import { plain, seconds } from '../numbers.ts'
import type { Texts } from '../text/en.ts'
import type { Moment } from './cursor.ts'

export function explained(moment: Moment, texts: Texts): string {
  const { type, after, cost, capacity } = moment
  if (after.outcome === 'impossible') return texts.step.never(plain(cost), plain(capacity))
  return WORDS[type](moment, texts)
}

const isAdmitted = ({ after }: Moment) => after.outcome === 'allowed'

/** How much is in use of what drains, in permits. */
const used = ({ intervalUs, capacity }: Moment, resetUs: number) => Math.min(resetUs / intervalUs, capacity)
const perSecond = ({ intervalUs }: Moment) => plain(1_000_000 / intervalUs)
const since = ({ atUs, previous }: Moment) => seconds(atUs - (previous?.atUs ?? atUs))

const WORDS: Readonly<Record<Moment['type'], (moment: Moment, texts: Texts) => string>> = {
  tokenBucket(moment, { step }) {
    const { previous, before, cost, capacity, after } = moment
    const tokens = capacity - used(moment, before.resetUs)
    const grown =
      previous === undefined
        ? step.fresh.bucket(plain(tokens))
        : step.tokens.grow(plain(capacity - used(moment, previous.figures.resetUs)), since(moment), perSecond(moment), plain(tokens)) +
          (tokens === capacity ? step.tokens.full(plain(capacity)) : '')
    if (isAdmitted(moment)) return grown + step.tokens.yes(plain(cost), plain(tokens - cost))
    return grown + step.tokens.no(plain(cost), plain(cost - tokens), seconds(after.retryUs))
  },

  leakyBucket(moment, { step }) {
    const { previous, before, cost, capacity, after } = moment
    const water = used(moment, before.resetUs)
    const leaked =
      previous === undefined
        ? step.fresh.water
        : step.water.leak(plain(used(moment, previous.figures.resetUs)), since(moment), perSecond(moment), plain(water)) +
          (water === 0 ? step.water.empty : '')
    const level = plain(water + cost)
    if (isAdmitted(moment)) return leaked + step.water.yes(plain(cost), level, plain(capacity), seconds(after.delayUs))
    return leaked + step.water.no(plain(cost), level, plain(capacity), seconds(after.retryUs))
  },

  gcra(moment, { step }) {
    const { atUs, previous, before, cost, capacity, intervalUs, after } = moment
    const tatUs = previous === undefined ? atUs : previous.atUs + previous.figures.resetUs
    const baseUs = atUs + before.resetUs
    const aheadUs = before.resetUs + cost * intervalUs
    const sum =
      step.gcra.start(seconds(atUs), seconds(tatUs), seconds(baseUs)) +
      step.gcra.sum(plain(cost), seconds(intervalUs), seconds(atUs + aheadUs), seconds(aheadUs))
    const most = seconds(capacity * intervalUs)
    return sum + (isAdmitted(moment) ? step.gcra.yes(most) : step.gcra.no(most, seconds(after.retryUs)))
  },

  fixedWindow(moment, { step }) {
    const { atUs, before, cost, capacity, windowUs, after } = moment
    const endUs = atUs + after.resetUs
    const count = capacity - before.remaining
    const sum = step.fixed.count(seconds(endUs - windowUs), seconds(endUs), plain(count), plain(cost), plain(count + cost))
    return sum + (isAdmitted(moment) ? step.fixed.yes(plain(capacity)) : step.fixed.no(plain(capacity), seconds(after.retryUs)))
  },

  slidingWindow(moment, { step }) {
    const { cost, capacity, overlap, after } = moment
    const { oldest, share, newer } = overlap ?? { oldest: 0, share: 1, newer: 0 }
    const count = oldest * share + newer
    const sum = step.sliding.sum(plain(oldest), plain(share), plain(newer), plain(count))
    const rest = [plain(cost), plain(count + cost), plain(capacity)] as const
    return sum + (isAdmitted(moment) ? step.sliding.yes(...rest) : step.sliding.no(...rest, seconds(after.retryUs)))
  },

  slidingLog(moment, { step }) {
    const { before, cost, capacity, windowUs, after } = moment
    const count = capacity - before.remaining
    const sum = step.log.count(seconds(windowUs), plain(count), plain(cost), plain(count + cost))
    return sum + (isAdmitted(moment) ? step.log.yes(plain(capacity)) : step.log.no(plain(capacity), seconds(after.retryUs)))
  },
}
