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
