/** Lua for the tests of the twins. */
export const SHORT_FORM = `
-- Where the short form leaves a take to the long way although it is allowed: GCRA where a product rounds, the fixed window where time stands still.
local function declines(algorithm, rule, s, nowUs)
  if algorithm == algorithms.gcra then
    return rule.capacity * rule.periodUs > 9007199254740991
  end
  return s[3] > nowUs
end

-- On what the key holds, or on nothing (false), beside the same state decoded.
local function shortTakeAgrees(algorithm, rule, raw, long, nowUs, cost)
  local isPlain = not declines(algorithm, rule, long, nowUs)
  local fits = not algorithm.settle(rule, rule, long, nowUs) and algorithm.waitUs(rule, long, nowUs, cost) == 0
  local take = algorithm.shortForm(rule.numbers, cost, nowUs)
  local held, remaining, resetUs
  if take then
    held, remaining, resetUs = take(raw)
  end
  if not (fits and isPlain) then
    return held == nil
  end
  algorithm.take(rule, long, nowUs, cost)
  return held == algorithm.encode(rule, long)
    and remaining == algorithm.remaining(rule, long, nowUs)
    and resetUs == algorithm.resetUs(rule, long, nowUs)
end

-- The short form of a take: takes exactly where settling changes nothing and the cost fits, and then leaves and says what \`take\` does.
local function shortFormAgrees(algorithm, rule, copy, nowUs, cost)
  if not algorithm.shortForm then
    return true
  end
  return shortTakeAgrees(algorithm, rule, algorithm.encode(rule, copy()), copy(), nowUs, cost)
    and shortTakeAgrees(algorithm, rule, false, algorithm.fresh(rule, nowUs), nowUs, cost)
end
`
