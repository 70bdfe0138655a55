-- Sliding window: the twin of sliding-window.ts. State: { atUs, slot, full, counts... }.
-- In Redis: a hash of time, limit and the count of each slot that is not empty, by the slot's number.

local slidingWindow = { kind = 'hash', bookable = false, sparse = true }

local AT, SLOT, FULL, COUNTS = 1, 2, 3, 4

local function effectiveUs(s, nowUs)
  return math.max(s[AT], nowUs)
end

-- Where the count of a slot stands: the present one's first, the oldest one's last.
local function placeOf(s, slot)
  return COUNTS + s[SLOT] - slot
end

local function startUs(rule, slot, offset)
  return mulAddDivUp(slot, rule.periodUs, offset, rule.perPeriod)
end

-- The sum of the counts in the window of a later slot, the oldest one's left out.
local function fullFrom(rule, s, slot)
  local written = s[SLOT]
  if slot - written >= rule.slots then
    return 0
  end
  local full = s[FULL]
  for left = written - rule.slots + 1, slot - rule.slots do
    full = full - s[placeOf(s, left)]
  end
  return full
end

-- The window as it is now: slot, offset, sum of the full slots, count of the oldest.
local function look(rule, s, nowUs)
  local slot, offset = mulDiv(effectiveUs(s, nowUs), rule.perPeriod, rule.periodUs)
  local oldest = 0
  if slot - rule.slots <= s[SLOT] then
    oldest = s[placeOf(s, slot - rule.slots)]
  end
  return slot, offset, fullFrom(rule, s, slot), oldest
end

local function weighed(rule, count, offset)
  if count == 0 then
    return 0
  end
  return mulAddDivUp(count, rule.periodUs - offset, 0, rule.periodUs)
end

local function usedAt(rule, s, nowUs)
  local _, offset, full, oldest = look(rule, s, nowUs)
  return full + weighed(rule, oldest, offset)
end

-- When no more than `room` is in use.
local function firstFitUs(rule, s, room, slot, full)
  local written = s[SLOT]
  while true do
    local leaving = slot - rule.slots
    local oldest = 0
    if leaving <= written then
      oldest = s[placeOf(s, leaving)]
    end
    if full <= room then
      if full + oldest <= room then
        return startUs(rule, slot, 0)
      end
      local fadedTo = mulDiv(room - full, rule.periodUs, oldest)
      if fadedTo > 0 then
        return startUs(rule, slot, rule.periodUs - fadedTo)
      end
    end
    if leaving + 1 <= written then
      full = full - s[placeOf(s, leaving + 1)]
    end
    slot = slot + 1
  end
end

local function advance(rule, s, nowUs)
  local slot, _, full = look(rule, s, nowUs)
  local passed = math.min(slot - s[SLOT], rule.slots + 1)
  for k = rule.slots, passed, -1 do
    s[COUNTS + k] = s[COUNTS + k - passed]
  end
  for k = 0, passed - 1 do
    s[COUNTS + k] = 0
  end
  s[AT], s[SLOT], s[FULL] = effectiveUs(s, nowUs), slot, full
end

local function clear(rule, s, nowUs)
  s[AT] = nowUs
  s[SLOT] = mulDiv(nowUs, rule.perPeriod, rule.periodUs)
  s[FULL] = 0
  for k = 0, rule.slots do
    s[COUNTS + k] = 0
  end
end

local function putCount(rule, s, slot, count)
  s[placeOf(s, slot)] = count
  if slot > s[SLOT] - rule.slots then
    s[FULL] = s[FULL] + count
  end
end

local function gather(rule, s, atUs, used)
  clear(rule, s, atUs)
  putCount(rule, s, s[SLOT], used)
end

local function heldBetween(s, oldest, newest)
  local held = 0
  for slot = oldest, math.min(newest, s[SLOT]) do
    held = held + s[placeOf(s, slot)]
  end
  return held
end

local function giveBack(rule, s, cost, oldest, newest)
  local left = cost
  for slot = newest, oldest, -1 do
    local place = placeOf(s, slot)
    local given = math.min(left, s[place])
    s[place] = s[place] - given
    if slot > s[SLOT] - rule.slots then
      s[FULL] = s[FULL] - given
    end
    left = left - given
  end
end

-- What moves to new numbers keeps its date while it counts in full there.
local function datedUs(rule, writtenUs, nowUs)
  local written = mulDiv(writtenUs, rule.perPeriod, rule.periodUs)
  local present = mulDiv(nowUs, rule.perPeriod, rule.periodUs)
  if present - written < rule.slots then
    return writtenUs
  end
  return nowUs
end

local function repair(rule, s, nowUs)
  if s[AT] - nowUs <= rule.windowUs then
    return false
  end
  gather(rule, s, nowUs, usedAt(rule, s, s[AT]))
  return true
end

local function greatestCommonDivisor(a, b)
  while b ~= 0 do
    a, b = b, math.fmod(a, b)
  end
  return a
end

function slidingWindow.ruleNamed(numbers, maxAheadUs)
  local limit, lengthUs, slots = string.match(numbers, '^(%d+) (%d+) (%d+)$')
  local divisor = greatestCommonDivisor(tonumber(slots), tonumber(lengthUs))
  local perPeriod, periodUs = slots / divisor, lengthUs / divisor
  return {
    capacity = tonumber(limit),
    numbers = numbers,
    windowUs = mulAddDivUp(slots + 1, periodUs, 0, perPeriod),
    maxAheadUs = maxAheadUs,
    slots = tonumber(slots),
    perPeriod = perPeriod,
    periodUs = periodUs,
  }
end

function slidingWindow.fresh(rule, nowUs)
  local s = {}
  clear(rule, s, nowUs)
  return s
end

function slidingWindow.settle(rule, written, s, nowUs)
  local renumbered = written.numbers ~= rule.numbers
  if renumbered then
    repair(written, s, nowUs)
    local used = math.min(usedAt(written, s, nowUs), rule.capacity)
    gather(rule, s, datedUs(rule, s[AT], nowUs), used)
  end
  return repair(rule, s, nowUs) or renumbered
end

function slidingWindow.waitUs(rule, s, nowUs, cost)
  local slot, offset, full, oldest = look(rule, s, nowUs)
  local room = rule.capacity - cost
  if room >= full and room >= full + weighed(rule, oldest, offset) then
    return 0
  end
  return firstFitUs(rule, s, room, slot, full) - nowUs
end

function slidingWindow.take(rule, s, nowUs, cost)
  advance(rule, s, nowUs)
  s[COUNTS] = s[COUNTS] + cost
  s[FULL] = s[FULL] + cost
end

function slidingWindow.enteredUs(s)
  return s[AT]
end

function slidingWindow.give(rule, s, nowUs, cost, ofUs)
  local present = look(rule, s, nowUs)
  local newest, oldest = present, present - rule.slots
  if ofUs >= 0 then
    newest = mulDiv(ofUs, rule.perPeriod, rule.periodUs)
    oldest = newest
  end
  if newest > present or oldest < present - rule.slots or heldBetween(s, oldest, newest) == 0 then
    return false
  end
  advance(rule, s, nowUs)
  giveBack(rule, s, cost, oldest, newest)
  return true
end

function slidingWindow.cancel()
  return false
end

function slidingWindow.remaining(rule, s, nowUs)
  return math.max(0, rule.capacity - usedAt(rule, s, nowUs))
end

function slidingWindow.resetUs(rule, s, nowUs)
  local present = look(rule, s, nowUs)
  for slot = s[SLOT], math.max(present, s[SLOT]) - rule.slots, -1 do
    if s[placeOf(s, slot)] > 0 then
      return startUs(rule, slot + rule.slots + 1, 0) - nowUs
    end
  end
  return effectiveUs(s, nowUs) - nowUs
end

function slidingWindow.encode(rule, s)
  local fields = { 'time', string.format('%.0f', s[AT]), 'limit', rule.numbers }
  for slot = s[SLOT] - rule.slots, s[SLOT] do
    local count = s[placeOf(s, slot)]
    if count > 0 then
      fields[#fields + 1] = string.format('%.0f', slot)
      fields[#fields + 1] = string.format('%.0f', count)
    end
  end
  return fields
end

function slidingWindow.decode(fields)
  local time, limit = string.match(fields.time or '', '^%d+$'), string.match(fields.limit or '', '^[1-9]%d* [1-9]%d* [1-9]%d?%d?%d?$')
  if not (time and limit) then
    return nil
  end
  local rule = slidingWindow.ruleNamed(limit, 0)
  local s = slidingWindow.fresh(rule, tonumber(time))
  for name, text in pairs(fields) do
    if name ~= 'time' and name ~= 'limit' then
      local slot, count = string.match(name, '^%d+$'), string.match(text, '^%d+$')
      if not (slot and count) or s[SLOT] - slot < 0 or s[SLOT] - slot > rule.slots then
        return nil
      end
      putCount(rule, s, tonumber(slot), tonumber(count))
    end
  end
  return s, limit
end

return slidingWindow
