-- The level: how many permits are in use, draining at a steady pace. The twin of level.ts, where the reasons are.
-- State, in the first two words: { tatUs, part }. Where the TypeScript leaves a pair in `level`, or has two functions for one, this returns
-- two values.

-- The rule that a state names: `capacity permits periodUs`.
local function levelRuleNamed(numbers, maxAheadUs)
  local capacity, permits, periodUs = string.match(numbers, '^(%d+) (%d+) (%d+)$')
  capacity, permits, periodUs = tonumber(capacity), tonumber(permits), tonumber(periodUs)
  local toleranceUs, tolerancePart = mulDiv(capacity, periodUs, permits)
  local windowUs = toleranceUs
  if tolerancePart > 0 then
    windowUs = toleranceUs + 1
  end
  return {
    capacity = capacity,
    permits = permits,
    periodUs = periodUs,
    numbers = numbers,
    windowUs = windowUs,
    maxAheadUs = maxAheadUs,
    toleranceUs = toleranceUs,
    tolerancePart = tolerancePart,
    ceilingUs = toleranceUs + maxAheadUs,
  }
end

-- The time that `cost` permits take. The last answer is kept: the decisions of a batch mostly cost the same.
local function timeOfCost(rule, cost)
  if rule.cost ~= cost then
    rule.cost = cost
    rule.costUs, rule.costPart = mulDiv(cost, rule.periodUs, rule.permits)
  end
  return rule.costUs, rule.costPart
end

-- How far the TAT lies ahead of `atUs`, never below zero: us, part.
local function debt(s, atUs)
  if s[1] < atUs then
    return 0, 0
  end
  return s[1] - atUs, s[2]
end

local function drainedInUs(s, atUs)
  local us, part = debt(s, atUs)
  if part > 0 then
    return us + 1
  end
  return us
end

local function levelOfTime(rule, us, part)
  return mulAddDiv(us, rule.permits, part, rule.periodUs)
end

local function putLevel(pace, s, atUs, whole, part)
  local us, rest = mulAddDiv(whole, pace.periodUs, part, pace.permits)
  s[1], s[2] = atUs + us, rest
end

local function left(rule, s, atUs)
  local us, part = debt(s, atUs)
  return math.max(rule.capacity - mulAddDivUp(us, rule.permits, part, rule.periodUs), 0)
end

local function fitsInUs(rule, s, atUs, cost)
  local us, part = debt(s, atUs)
  local costUs, costPart = timeOfCost(rule, cost)
  us = us - rule.toleranceUs + costUs
  part = part - rule.tolerancePart + costPart
  if part > rule.permits then
    us = us + 2
  elseif part > 0 then
    us = us + 1
  end
  return math.max(us, 0)
end

local function charge(rule, s, atUs, cost)
  local us, part = debt(s, atUs)
  local costUs, costPart = timeOfCost(rule, cost)
  us, part = atUs + us + costUs, part + costPart
  if part >= rule.permits then
    us, part = us + 1, part - rule.permits
  end
  s[1], s[2] = us, part
end

local function moveEarlier(rule, s, atUs, us, part)
  if (us == 0 and part == 0) or drainedInUs(s, atUs) == 0 then
    return false
  end
  local borrow = 0
  if s[2] < part then
    borrow = 1
  end
  local tatUs = s[1] - us - borrow
  if tatUs < atUs then
    s[1], s[2] = atUs, 0
  else
    s[1], s[2] = tatUs, s[2] - part + borrow * rule.permits
  end
  return true
end

local function giveBack(rule, s, atUs, cost)
  return moveEarlier(rule, s, atUs, timeOfCost(rule, cost))
end

-- Gives a reservation back, minus what was charged after it: what the TAT lies further ahead than the mark.
local function giveBackTo(rule, s, atUs, cost, markUs, markPart)
  local us, part = timeOfCost(rule, cost)
  local afterUs, afterPart = debt(s, atUs)
  afterUs, afterPart = afterUs - markUs, afterPart - markPart
  if afterUs > 0 or (afterUs == 0 and afterPart > 0) then
    us, part = us - afterUs, part - afterPart
    if part < 0 then
      us, part = us - 1, part + rule.permits
    end
    if part >= rule.permits then
      us, part = us + 1, part - rule.permits
    end
  end
  return us >= 0 and moveEarlier(rule, s, atUs, us, part)
end

local function cutToCeiling(rule, s, atUs)
  local beyondUs = s[1] - atUs - rule.ceilingUs
  if beyondUs < 0 or (beyondUs == 0 and s[2] <= rule.tolerancePart) then
    return false
  end
  s[1], s[2] = atUs + rule.ceilingUs, rule.tolerancePart
  return true
end

local function carryParts(written, rule, whole, part)
  local carried = mulAddDivUp(part, rule.periodUs, 0, written.periodUs)
  if carried == rule.periodUs then
    return whole + 1, 0
  end
  return whole, carried
end

local function carryOver(written, rule, whole, part)
  if whole >= written.capacity then
    return carryParts(written, rule, math.min(written.capacity, rule.capacity) + (whole - written.capacity), part)
  elseif whole >= rule.capacity then
    return rule.capacity, 0
  end
  return carryParts(written, rule, whole, part)
end

local function renumber(written, rule, s, atUs)
  local whole, part = levelOfTime(written, debt(s, atUs))
  putLevel(rule, s, atUs, carryOver(written, rule, whole, part))
end
