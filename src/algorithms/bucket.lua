-- A bucket: a level with the time it was written. The twin of bucket.ts. State: { used, usedPart, atUs }.

local bucket = { kind = 'hash', bookable = true, ruleNamed = levelRuleNamed }

local function write(s, used, part, atUs)
  s[1], s[2], s[3] = used, part, atUs
end

-- An earlier reading of the clock counts as the time of writing.
local function effectiveUs(s, nowUs)
  return math.max(s[3], nowUs)
end

local function usedAt(rule, s, nowUs)
  return drain(rule, s[1], s[2], nowUs - s[3])
end

local function giveBack(rule, s, nowUs, whole, part)
  local used, usedPart = usedAt(rule, s, nowUs)
  if (whole == 0 and part == 0) or (used == 0 and usedPart == 0) then
    return false
  end
  used, usedPart = subtract(rule, used, usedPart, whole, part)
  write(s, used, usedPart, effectiveUs(s, nowUs))
  return true
end

local function repair(rule, s, nowUs)
  local redated = s[3] - nowUs > rule.windowUs
  if redated then
    s[3] = nowUs
  end
  local used, part, cut = cutToCeiling(rule, s[1], s[2])
  write(s, used, part, s[3])
  return redated or cut
end

function bucket.fresh(rule, nowUs)
  return { 0, 0, nowUs }
end

function bucket.settle(rule, written, s, nowUs)
  local renumbered = written.numbers ~= rule.numbers
  if renumbered then
    repair(written, s, nowUs)
    local used, part = usedAt(written, s, nowUs)
    used, part = carryOver(written, rule, used, part)
    write(s, used, part, effectiveUs(s, nowUs))
  end
  return repair(rule, s, nowUs) or renumbered
end

function bucket.waitUs(rule, s, nowUs, cost)
  local used, part = usedAt(rule, s, nowUs)
  local over = used + cost - rule.capacity
  if over < 0 or (over == 0 and part == 0) then
    return 0
  end
  return effectiveUs(s, nowUs) - nowUs + drainTimeUs(rule, over, part)
end

function bucket.take(rule, s, nowUs, cost)
  local used, part = usedAt(rule, s, nowUs)
  write(s, used + cost, part, effectiveUs(s, nowUs))
end

function bucket.give(rule, s, nowUs, cost, ofUs)
  if ofUs >= 0 and nowUs - ofUs >= rule.windowUs then
    return false
  end
  return giveBack(rule, s, nowUs, cost, 0)
end

-- Gives a reservation back, minus what was charged after it, as long as its ticket's level is above `turn`.
function bucket.cancelAbove(turn, rule, s, nowUs, cost, ticket)
  local mark, markPart = drain(rule, ticket[1], ticket[2], effectiveUs(s, nowUs) - ticket[3])
  if mark < turn or (mark == turn and markPart == 0) then
    return false
  end
  local used, part = usedAt(rule, s, nowUs)
  local after, afterPart = subtract(rule, used, part, mark, markPart)
  local back, backPart = subtract(rule, cost, 0, after, afterPart)
  return giveBack(rule, s, nowUs, back, backPart)
end

function bucket.cancel(rule, s, nowUs, cost, ticket)
  return bucket.cancelAbove(rule.capacity, rule, s, nowUs, cost, ticket)
end

function bucket.remaining(rule, s, nowUs)
  return leftOf(rule, usedAt(rule, s, nowUs))
end

function bucket.resetUs(rule, s, nowUs)
  local used, part = usedAt(rule, s, nowUs)
  return effectiveUs(s, nowUs) - nowUs + drainTimeUs(rule, used, part)
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
