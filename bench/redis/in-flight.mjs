// Loops that keep a number of decisions under way: as one is answered, the next is asked.

/** How many are in flight. The goals are for the first, at which more is measured. */
export const MAIN = 256
export const IN_FLIGHT = [64, 128, MAIN, 1024]
/**
 * A pipeline has to be full before it is sent: two of them, so that one is under way while the
 * other is filled.
 */
const PIPELINES = 2

/**
 * Returns `round(from, calls)`, which asks that many keys, `keyAt(from)` first, and says how many
 * were allowed.
 */
export function inFlight({ ask, askAll, isAllowed }, keyAt, atOnce) {
  return async (from, calls) => {
    const end = from + calls
    let next = from
    let allowed = 0

    async function oneByOne() {
      while (next < end) {
        try {
          if (isAllowed(await ask(keyAt(next++)))) allowed++
        } catch (no) {
          // Some peers refuse by throwing a value that is no Error.
          if (no instanceof Error) throw no
        }
      }
    }

    async function pipelineByPipeline() {
      while (next < end) {
        const keys = []
        while (next < end && keys.length < atOnce / PIPELINES) keys.push(keyAt(next++))
        const answers = await askAll(keys)
        allowed += answers.filter(isAllowed).length
      }
    }

    const [worker, workers] = askAll === undefined ? [oneByOne, atOnce] : [pipelineByPipeline, PIPELINES]
    await Promise.all(Array.from({ length: workers }, worker))
    return allowed
  }
}
