/** Lua for the tests of the twins. */

/** The numbers of a limit as a short form is given them. */
export const WIRED = `
local function wired(numbers)
  return numbers .. ':' .. packedNumbers(numbers)
end
`

export const SHORT_FORM = `${WIRED}
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
  local take = algorithm.shortForm(wired(rule.numbers), cost, nowUs)
  local held, remaining, resetUs, livesUs, isKept
  if take then
    held, remaining, resetUs, livesUs, isKept = take(raw, 1, raw and #raw)
  end
  if not (fits and isPlain) then
    return held == nil
  end
  algorithm.take(rule, long, nowUs, cost)
  -- What it holds may say besides how long the key lives.
  return algorithm.encode(rule, (algorithm.decode(held))) == algorithm.encode(rule, long)
    and livesUs >= resetUs
    and (not isKept or #held == #raw)
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

/**
 * ARGV: the algorithm, a rule's numbers, the longest pause in µs, what times are a multiple of, how many steps. Takes at random times from a key that expires by what the
 * short form says, and from one that never does. Answers what went wrong ('' for nothing), how often the time to live was kept, and how
 * often it was set.
 */
export const STEPS_OF_A_LIFE = `${WIRED}
local algorithm, numbers, mostUs, unitUs, steps = algorithms[ARGV[1]], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local seed = 20260417
local function random(below)
  seed = seed * 16807 % 2147483647
  return floor(seed / 2147483647 * below)
end

local nowUs, held, endless, expiresUs, kept, set = 1763200000000000, false, false, 0, 0, 0
for step = 1, steps do
  -- Crowds, now and then a rest.
  nowUs = nowUs + random(random(10) == 0 and mostUs or mostUs / 10) + (random(500) == 0 and 40 * mostUs or 0)
  nowUs = nowUs - nowUs % unitUs
  if nowUs >= expiresUs then
    held = false
  end
  local take = algorithm.shortForm(wired(numbers), 1 + random(3), nowUs)
  local taken, remaining, resetUs, livesUs, isKept = take(held, 1, held and #held)
  local endlessTaken, endlessRemaining, endlessResetUs = take(endless, 1, endless and #endless)
  if remaining ~= endlessRemaining or resetUs ~= endlessResetUs then
    return { 'expiry changed the answer of step ' .. step, kept, set }
  end
  if taken then
    if isKept then
      kept = kept + 1
    else
      set, expiresUs = set + 1, nowUs + livesUs
    end
    if isKept and (#taken ~= #held or livesUs > expiresUs - nowUs) then
      return { 'kept what would have to be set at step ' .. step, kept, set }
    elseif nowUs + resetUs > expiresUs then
      return { 'the key expires too early after step ' .. step, kept, set }
    elseif not isKept and livesUs > 1.25 * resetUs + 1 then
      return { 'the key lives too long after step ' .. step, kept, set }
    end
    held, endless = taken, endlessTaken
  end
end
return { '', kept, set }
`
