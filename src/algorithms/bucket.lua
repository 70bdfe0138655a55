-- A bucket: a level with the time it was written. The twin of bucket.ts. State: { tatUs, part, atUs }.

local bucket = { kind = 'hash', bookable = true, ruleNamed = levelRuleNamed }

-- An earlier reading of the clock counts as the time of writing.
local function effectiveUs(s, nowUs)
  return math.max(s[3], nowUs)
end

local function dated(changed, s, atUs)
  if changed then
    s[3] = atUs
  end
  return changed
end

local function repair(rule, s, nowUs)
  local aheadUs = s[3] - nowUs
  local redated = aheadUs > rule.windowUs
  if redated then
    s[1], s[3] = s[1] - aheadUs, nowUs
  end
  return cutToCeiling(rule, s, s[3]) or redated
end

function bucket.fresh(rule, nowUs)
  return { nowUs, 0, nowUs }
end

function bucket.settle(rule, written, s, nowUs)
  local renumbered = written.numbers ~= rule.numbers
  if renumbered then
    repair(written, s, nowUs)
    s[3] = effectiveUs(s, nowUs)
    renumber(written, rule, s, s[3])
  end
  return repair(rule, s, nowUs) or renumbered
end

function bucket.waitUs(rule, s, nowUs, cost)
  local atUs = effectiveUs(s, nowUs)
  local waitUs = fitsInUs(rule, s, atUs, cost)
  if waitUs == 0 then
    return 0
  end
  return waitUs + atUs - nowUs
end

function bucket.take(rule, s, nowUs, cost)
  s[3] = effectiveUs(s, nowUs)
  charge(rule, s, s[3], cost)
end

function bucket.enteredUs(s)
  return s[3]
end

function bucket.give(rule, s, nowUs, cost, ofUs)
  if ofUs >= 0 and nowUs - ofUs >= rule.windowUs then
    return false
  end
  local atUs = effectiveUs(s, nowUs)
  return dated(giveBack(rule, s, atUs, cost), s, atUs)
end

-- Gives a reservation back, minus what was charged after it, as long as its TAT lies further ahead than its turn.
function bucket.cancelAhead(rule, s, nowUs, cost, ticket, turnUs, turnPart)
  local atUs = effectiveUs(s, nowUs)
  local markUs, markPart = debt(ticket, effectiveUs(ticket, atUs))
  if markUs < turnUs or (markUs == turnUs and markPart <= turnPart) then
    return false
  end
  return dated(giveBackTo(rule, s, atUs, cost, markUs, markPart), s, atUs)
end

function bucket.cancel(rule, s, nowUs, cost, ticket)
  return bucket.cancelAhead(rule, s, nowUs, cost, ticket, rule.toleranceUs, rule.tolerancePart)
end

function bucket.remaining(rule, s, nowUs)
  return left(rule, s, effectiveUs(s, nowUs))
end

function bucket.resetUs(rule, s, nowUs)
  local atUs = effectiveUs(s, nowUs)
  return atUs - nowUs + drainedInUs(s, atUs)
end

-- What was in use when the state was written, and when that was: for the texts.
function bucket.read(rule, s)
  local used, part = levelOfTime(rule, s[1] - s[3], s[2])
  return used, part, s[3]
end

-- The other way. The numbers are those that the state names.
function bucket.written(numbers, used, part, atUs)
  local permits, periodUs = string.match(numbers, '^%d+ (%d+) (%d+)$')
  local s = { 0, 0, atUs }
  putLevel({ permits = tonumber(permits), periodUs = tonumber(periodUs) }, s, atUs, used, part)
  return s
end

-- A face of the bucket: everything above, to be given a text of its own.
local function bucketFace()
  local face = {}
  for name, value in pairs(bucket) do
    face[name] = value
  end
  return face
end

return bucketFace
