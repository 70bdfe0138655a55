// Loaded before anything else in a process (`node --import`): every clock in it is off by SKEW_MS.
// Timers are not: they are the system's.
const skewMs = Number(process.env.SKEW_MS)
const { now: dateNow } = Date
const { hrtime } = process
const { performance } = globalThis
const performanceNow = performance.now.bind(performance)

Date.now = () => dateNow() + skewMs
performance.now = () => performanceNow() + skewMs
process.hrtime = (since) => {
  const [seconds, nanoseconds] = hrtime(since)
  return since === undefined ? [seconds + skewMs / 1000, nanoseconds] : [seconds, nanoseconds]
}
process.hrtime.bigint = () => hrtime.bigint() + BigInt(skewMs) * 1_000_000n

// Proof for the process that started it.
process.send?.({ clockMs: Date.now() })
