-- GCRA: the twin of gcra.ts. State: a level, { tatUs, part }. In Redis: a string, `TAT burst permits periodUs [part]`.

local gcra = { kind = 'string', bookable = true, ruleNamed = levelRuleNamed }

function gcra.fresh(rule, nowUs)
  return { nowUs, 0 }
end

function gcra.settle(rule, written, s, nowUs)
  local renumbered = written.numbers ~= rule.numbers
  if renumbered then
    cutToCeiling(written, s, nowUs)
    renumber(written, rule, s, nowUs)
  end
  return cutToCeiling(rule, s, nowUs) or renumbered
end

-- The short form of a take that is allowed, for a state under the same numbers: charges, and returns what is left and when the key is idle.
-- Nothing is done and nothing returned where the cost does not fit.
function gcra.takeIfFits(rule, s, nowUs, cost)
  local costUs, costPart = timeOfCost(rule, cost)
  local us, part = s[1] - nowUs, s[2] + costPart
  if us < 0 then
    us, part = 0, costPart
  end
  us = us + costUs
  if part >= rule.permits then
    us, part = us + 1, part - rule.permits
  end
  if us > rule.toleranceUs or (us == rule.toleranceUs and part > rule.tolerancePart) then
    return nil
  end
  s[1], s[2] = nowUs + us, part
  local remaining = rule.capacity - mulAddDivUp(us, rule.permits, part, rule.periodUs)
  if part > 0 then
    return remaining, us + 1
  end
  return remaining, us
end

gcra.waitUs = fitsInUs

gcra.take = charge

function gcra.give(rule, s, nowUs, cost, ofUs)
  if ofUs >= 0 and nowUs - ofUs >= rule.windowUs then
    return false
  end
  return giveBack(rule, s, nowUs, cost)
end

function gcra.cancel(rule, s, nowUs, cost, ticket)
  local aheadUs, part = ticket[1] - nowUs, ticket[2]
  -- Its time has come when its TAT lies no more than the tolerance ahead.
  if aheadUs < rule.toleranceUs or (aheadUs == rule.toleranceUs and part <= rule.tolerancePart) then
    return false
  end
  return giveBackTo(rule, s, nowUs, cost, aheadUs, part)
end

gcra.remaining = left

function gcra.resetUs(_rule, s, nowUs)
  return drainedInUs(s, nowUs)
end

function gcra.encode(rule, s)
  if s[2] == 0 then
    return string.format('%d %s', s[1], rule.numbers)
  end
  return string.format('%.0f %s %.0f', s[1], rule.numbers, s[2])
end

-- The state and the numbers it was written under; nothing at all for what this algorithm did not write.
-- Mostly that is a whole microsecond under the numbers of `rule`, which needs no pattern.
function gcra.decode(text, rule)
  local digits = #text - #rule.numbers - 1
  if string.sub(text, digits + 2) == rule.numbers and string.match(text, '^%d+()') == digits + 1 then
    return { tonumber(string.sub(text, 1, digits)), 0 }, rule.numbers
  end
  local tat, numbers, rest = string.match(text, '^(%d+) (%d+ %d+ %d+)(.*)$')
  local part = rest == '' and '0' or string.match(rest or '', '^ (%d+)$')
  if not part then
    return nil
  end
  return { tonumber(tat), tonumber(part) }, numbers
end

return gcra
