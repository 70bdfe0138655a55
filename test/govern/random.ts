/** Numbers from a seed: the same ones every time. */

export type Random = () => number

/** Mulberry32: from 0 up to, but not including, 1. */
export function randomOf(seed: number): Random {
  let a = (seed * 2_654_435_761) >>> 0
  return () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface Distribution {
  readonly kind: 'constant' | 'uniform' | 'exponential' | 'lognormal' | 'pareto' | 'mix'
  /** The mean. */
  readonly ms?: number
  /** Of `uniform`: how far from the mean, as a share of it. */
  readonly spread?: number
  /** Of `lognormal`: standard deviation by mean. */
  readonly cv?: number
  /** Of `pareto`: the smaller, the heavier its tail; above 1. */
  readonly shape?: number
  /** Of `mix`: one of them, by its share. */
  readonly of?: readonly (Distribution & { readonly share: number })[]
}

/** Draws service times. */
export function samplerOf(distribution: Distribution, random: Random): () => number {
  const { kind, ms = 0, spread = 0.5, cv = 1, shape = 2.5, of = [] } = distribution
  switch (kind) {
    case 'constant':
      return () => ms
    case 'uniform':
      return () => ms * (1 + spread * (2 * random() - 1))
    case 'exponential':
      return () => -ms * Math.log(1 - random())
    case 'lognormal': {
      const variance = Math.log(1 + cv * cv)
      return () => ms * Math.exp(Math.sqrt(variance) * normal(random) - variance / 2)
    }
    case 'pareto':
      return () => (ms * (shape - 1)) / shape / (1 - random()) ** (1 / shape)
    case 'mix': {
      const samplers = of.map((part) => ({ share: part.share, draw: samplerOf(part, random) }))
      return () => {
        let at = random()
        const chosen = samplers.find(({ share }) => {
          at -= share
          return at < 0
        })
        return (chosen ?? (samplers.at(-1) as { draw: () => number })).draw()
      }
    }
  }
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
