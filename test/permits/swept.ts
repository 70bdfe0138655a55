/** Permits that were held from a time to another, by the server's clock: how many at once. */

/** Of each token, which is the time of its grant, until when it was held for certain. */
export type Holds = ReadonlyMap<number, number>

/** From notes of a token and a time at which it was held. */
export function holdsOf(notes: Iterable<readonly [token: number, us: number]>): Holds {
  const lastUs = new Map<number, number>()
  for (const [token, us] of notes) lastUs.set(token, Math.max(lastUs.get(token) ?? token, us))
  return lastUs
}

/** The most that were held at one moment. */
export function mostHeld(holds: Holds): number {
  const edges = [...holds].flatMap(([token, us]) => [
    { us: token, sign: 1 },
    { us, sign: -1 },
  ])
  // What ends where another begins was held no more.
  edges.sort((a, b) => a.us - b.us || a.sign - b.sign)
  let held = 0
  let most = 0
  for (const { sign } of edges) {
    held += sign
    most = Math.max(most, held)
  }
  return most
}

/** How many were held when one was granted, with it. */
export function heldAtGrant(holds: Holds, token: number): number {
  return [...holds].filter(([from, until]) => from <= token && (until > token || from === token)).length
}
