-- The level: how many permits are in use, draining at a steady pace. The twin of level.ts, where the reasons are.
-- Where the TypeScript leaves a pair in `level`, this returns two values.

local function levelRule(capacity, permits, periodUs, maxAheadUs)
  local toleranceUs, tolerancePart = mulDiv(capacity, periodUs, permits)
  local intervalUs, intervalPart = mulDiv(1, periodUs, permits)
  local windowUs = toleranceUs
  if tolerancePart > 0 then
    windowUs = toleranceUs + 1
  end
  local aheadWhole, ceilingPart = mulDiv(maxAheadUs, permits, periodUs)
  return {
    capacity = capacity,
    permits = permits,
    periodUs = periodUs,
    numbers = string.format('%.0f %.0f %.0f', capacity, permits, periodUs),
    windowUs = windowUs,
    maxAheadUs = maxAheadUs,
    ceilingWhole = capacity + aheadWhole,
    ceilingPart = ceilingPart,
    idleUs = windowUs + maxAheadUs,
    intervalUs = intervalUs,
    intervalPart = intervalPart,
    toleranceUs = toleranceUs,
    tolerancePart = tolerancePart,
  }
end

-- The rule that a state names: `capacity permits periodUs`.
local function levelRuleNamed(numbers, maxAheadUs)
  local capacity, permits, periodUs = string.match(numbers, '^(%d+) (%d+) (%d+)$')
  return levelRule(tonumber(capacity), tonumber(permits), tonumber(periodUs), maxAheadUs)
end

local function subtract(rule, whole, part, lessWhole, lessPart)
  local borrow = 0
  if part < lessPart then
    borrow = 1
  end
  local left = whole - lessWhole - borrow
  if left < 0 then
    return 0, 0
  end
  return left, part - lessPart + borrow * rule.periodUs
end

local function drain(rule, whole, part, elapsedUs)
  if elapsedUs >= rule.idleUs then
    return 0, 0
  elseif elapsedUs <= 0 then
    return whole, part
  end
  local drained, drainedPart = mulDiv(elapsedUs, rule.permits, rule.periodUs)
  return subtract(rule, whole, part, drained, drainedPart)
end

local function drainTimeUs(rule, whole, part)
  return mulAddDivUp(whole, rule.periodUs, part, rule.permits)
end

-- The level cut down to the ceiling, and whether it was above.
local function cutToCeiling(rule, whole, part)
  if whole > rule.ceilingWhole or (whole == rule.ceilingWhole and part > rule.ceilingPart) then
    return rule.ceilingWhole, rule.ceilingPart, true
  end
  return whole, part, false
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
    whole, part = carryParts(written, rule, math.min(written.capacity, rule.capacity) + (whole - written.capacity), part)
  elseif whole >= rule.capacity then
    whole, part = rule.capacity, 0
  else
    whole, part = carryParts(written, rule, whole, part)
  end
  whole, part = cutToCeiling(rule, whole, part)
  return whole, part
end

local function levelOfTime(rule, us, part)
  return mulAddDiv(us, rule.permits, part, rule.periodUs)
end

-- Whole permits left of the capacity when (whole, part) are in use.
local function leftOf(rule, whole, part)
  local left = rule.capacity - whole
  if part > 0 then
    left = left - 1
  end
  return math.max(left, 0)
end
