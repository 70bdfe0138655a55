/** The median with the quartiles around it: { median, low, high }. */
export function spreadOf(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) }
}

/** Between two values it goes in a straight line. */
function quantile(sorted, share) {
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)]
  const above = sorted[Math.ceil(at)]
  return below + (above - below) * (at - Math.floor(at))
}

/**
 * How many times as fast `one` was as `other`, round by round: both were measured side by side in
 * each.
 */
export function timesAsFast(one, other) {
  return spreadOf(one.ns.map((ns, round) => other.ns[round] / ns))
}

export function millionPerSecond({ ns }) {
  return spreadOf(ns.map((each) => 1000 / each))
}
