/** Lua for the tests of the twins. */
export const SHORT_FORM = `
-- The short form of a take: charges exactly where settling changes nothing and the cost fits, and then leaves and says what \`take\` does.
local function shortFormAgrees(algorithm, rule, copy, nowUs, cost)
  if not algorithm.takeIfFits then
    return true
  end
  local short, long = copy(), copy()
  local fits = not algorithm.settle(rule, rule, copy(), nowUs) and algorithm.waitUs(rule, long, nowUs, cost) == 0
  local remaining, resetUs = algorithm.takeIfFits(rule, short, nowUs, cost)
  if fits then
    algorithm.take(rule, long, nowUs, cost)
    if remaining ~= algorithm.remaining(rule, long, nowUs) or resetUs ~= algorithm.resetUs(rule, long, nowUs) then
      return false
    end
  end
  return (remaining ~= nil) == fits and algorithm.encode(rule, short) == algorithm.encode(rule, long)
end
`
