-- GCRA: the twin of gcra.ts. State: { tatUs, tatPart }. In Redis: a string, `TAT burst permits periodUs [part]`.

local gcra = { kind = 'string', bookable = true, ruleNamed = levelRuleNamed }

-- How far the TAT lies ahead of now, never below zero.
local function debt(s, nowUs)
  if s[1] < nowUs then
    return 0, 0
  end
  return s[1] - nowUs, s[2]
end

local function isIdle(s, nowUs)
  local us, part = debt(s, nowUs)
  return us == 0 and part == 0
end

local function liesAhead(rule, ticket, nowUs)
  local us = ticket[1] - nowUs - rule.toleranceUs
  return us > 0 or (us == 0 and ticket[2] > rule.tolerancePart)
end

-- Moves the TAT (us, part) earlier, but not before now.
local function moveEarlier(rule, s, nowUs, us, part)
  local borrow = 0
  if s[2] < part then
    borrow = 1
  end
  local tatUs = s[1] - us - borrow
  if tatUs < nowUs then
    s[1], s[2] = nowUs, 0
  else
    s[1], s[2] = tatUs, s[2] - part + borrow * rule.permits
  end
end

local function clamp(rule, s, nowUs)
  local furthestUs = nowUs + rule.toleranceUs + rule.maxAheadUs
  if s[1] < furthestUs or (s[1] == furthestUs and s[2] <= rule.tolerancePart) then
    return false
  end
  s[1], s[2] = furthestUs, rule.tolerancePart
  return true
end

local function renumber(written, rule, s, nowUs)
  local whole, part = levelOfTime(written, debt(s, nowUs))
  whole, part = carryOver(written, rule, whole, part)
  local us, rest = mulAddDiv(whole, rule.periodUs, part, rule.permits)
  s[1], s[2] = nowUs + us, rest
end

function gcra.fresh(rule, nowUs)
  return { nowUs, 0 }
end

function gcra.settle(rule, written, s, nowUs)
  local renumbered = written.numbers ~= rule.numbers
  if renumbered then
    clamp(written, s, nowUs)
    renumber(written, rule, s, nowUs)
  end
  return clamp(rule, s, nowUs) or renumbered
end

function gcra.waitUs(rule, s, nowUs, cost)
  local us, part = debt(s, nowUs)
  local costUs, costPart = mulDiv(cost, rule.periodUs, rule.permits)
  us = us + costUs - rule.toleranceUs
  part = part + costPart - rule.tolerancePart
  if part > rule.permits then
    us = us + 2
  elseif part > 0 then
    us = us + 1
  end
  return math.max(us, 0)
end

function gcra.take(rule, s, nowUs, cost)
  if s[1] < nowUs then
    s[1], s[2] = nowUs, 0
  end
  local costUs, costPart = mulDiv(cost, rule.periodUs, rule.permits)
  local us, part = s[1] + costUs, s[2] + costPart
  if part >= rule.permits then
    us, part = us + 1, part - rule.permits
  end
  s[1], s[2] = us, part
end

function gcra.give(rule, s, nowUs, cost, ofUs)
  if isIdle(s, nowUs) or (ofUs >= 0 and nowUs - ofUs >= rule.windowUs) then
    return false
  end
  moveEarlier(rule, s, nowUs, mulDiv(cost, rule.periodUs, rule.permits))
  return true
end

function gcra.cancel(rule, s, nowUs, cost, ticket)
  if isIdle(s, nowUs) or not liesAhead(rule, ticket, nowUs) then
    return false
  end
  local us, part = mulDiv(cost, rule.periodUs, rule.permits)
  local afterUs, afterPart = s[1] - ticket[1], s[2] - ticket[2]
  if afterUs > 0 or (afterUs == 0 and afterPart > 0) then
    us, part = us - afterUs, part - afterPart
    if part < 0 then
      us, part = us - 1, part + rule.permits
    end
    if part >= rule.permits then
      us, part = us + 1, part - rule.permits
    end
    if us < 0 or (us == 0 and part == 0) then
      return false
    end
  end
  moveEarlier(rule, s, nowUs, us, part)
  return true
end

function gcra.remaining(rule, s, nowUs)
  return leftOf(rule, levelOfTime(rule, debt(s, nowUs)))
end

function gcra.resetUs(rule, s, nowUs)
  local us, part = debt(s, nowUs)
  if part > 0 then
    return us + 1
  end
  return us
end

function gcra.encode(rule, s)
  if s[2] == 0 then
    return string.format('%.0f %s', s[1], rule.numbers)
  end
  return string.format('%.0f %s %.0f', s[1], rule.numbers, s[2])
end

-- The state and the numbers it was written under; nothing at all for what this algorithm did not write.
function gcra.decode(text)
  local tat, numbers, rest = string.match(text, '^(%d+) (%d+ %d+ %d+)(.*)$')
  local part = rest == '' and '0' or string.match(rest or '', '^ (%d+)$')
  if not part then
    return nil
  end
  return { tonumber(tat), tonumber(part) }, numbers
end

return gcra
