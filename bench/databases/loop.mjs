// How a database is asked: many at a time, or one after the other.

/** Decisions per second, with so many under way all the time, on so many keys in turn. */
export async function perSecond(ask, { keys, inFlight, ms }) {
  let asked = 0
  const fromMs = performance.now()
  const worker = async () => {
    while (performance.now() - fromMs < ms) {
      asked += 1
      await ask(`user:${asked % keys}`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return (1000 * asked) / (performance.now() - fromMs)
}

/** The median time of a call in milliseconds, one at a time. */
export async function medianMs(ask, { keys, calls }) {
  const times = []
  for (let k = 0; k < calls; k++) {
    const fromMs = performance.now()
    await ask(`user:${k % keys}`)
    times.push(performance.now() - fromMs)
  }
  return times.sort((a, b) => a - b)[calls >> 1]
}

/**
 * Measures all contestants in turn, round by round: `{ [name]: [figure of each round] }`. The first
 * round is not counted.
 */
export async function inTurn(contestants, rounds, measure) {
  const figures = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, ask] of Object.entries(contestants)) {
      const figure = await measure(ask)
      if (round > 0) figures[name].push(figure)
    }
  }
  return figures
}
