// The floor of `consume`: what `floor.mjs` does, and the full decision told. The least that it
// costs to make that object and its figures, by arithmetic that is not exact and knows no clock
// that steps back.
export function floorDecision({ ratePerSecond, burst, rows = 1 << 21, now = () => performance.now() }) {
  const interval = 1000 / ratePerSecond
  const tolerance = interval * burst
  const index = new Map()
  const tat = new Float64Array(rows)
  let used = 0
  return function consume(key) {
    const t = now()
    let row = index.get(key)
    if (row === undefined) {
      row = used++
      index.set(key, row)
    }
    const next = Math.max(t, tat[row]) + interval
    const allowed = next - t <= tolerance
    if (allowed) tat[row] = next
    const outcome = allowed ? 'allowed' : 'limited'
    const resetAfterMs = Math.max(0, tat[row] - t)
    const remaining = Math.floor((tolerance - resetAfterMs) / interval)
    const retryAfterMs = allowed ? 0 : next - t - tolerance
    const part = { outcome, limit: burst, remaining, retryAfterMs, resetAfterMs, delayMs: 0 }
    return {
      outcome,
      allowed,
      limit: burst,
      remaining,
      retryAfterMs,
      resetAfterMs,
      delayMs: 0,
      atMs: t,
      policy: 'default',
      parts: { default: part },
      degraded: false,
    }
  }
}
