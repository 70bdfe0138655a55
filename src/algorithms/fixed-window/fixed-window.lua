-- Fixed window: the twin of fixed-window.ts. State: { startUs, count, atUs }. In Redis: a string, `count start time limit window first offset`.

local fixedWindow = { kind = 'string', bookable = false }

local function write(s, startUs, count, atUs)
  s[1], s[2], s[3] = startUs, count, atUs
end

local function effectiveUs(s, nowUs)
  return math.max(s[3], nowUs)
end

local function counted(rule, s, nowUs)
  if nowUs >= s[1] + rule.windowUs then
    return 0
  end
  return s[2]
end

local function untilEndUs(rule, s, nowUs)
  return s[1] + rule.windowUs - nowUs
end

local function windowStartUs(rule, atUs)
  if rule.fromFirst then
    return atUs
  end
  return math.floor((atUs - rule.offsetUs) / rule.windowUs) * rule.windowUs + rule.offsetUs
end

function fixedWindow.ruleNamed(numbers, maxAheadUs)
  local limit, windowUs, first, offsetUs = string.match(numbers, '^(%d+) (%d+) ([01]) (%d+)$')
  return {
    capacity = tonumber(limit),
    numbers = numbers,
    windowUs = tonumber(windowUs),
    maxAheadUs = maxAheadUs,
    fromFirst = first == '1',
    offsetUs = tonumber(offsetUs),
  }
end

function fixedWindow.fresh(rule, nowUs)
  return { nowUs, 0, nowUs }
end

function fixedWindow.take(rule, s, nowUs, cost)
  local count = counted(rule, s, nowUs)
  local atUs = effectiveUs(s, nowUs)
  if count == 0 then
    write(s, windowStartUs(rule, atUs), cost, atUs)
  else
    write(s, s[1], count + cost, atUs)
  end
end

-- The short form of a take that is allowed, for a state under the same numbers that needs no repair: charges, and returns what is left and
-- when the key is idle. Nothing is done and nothing returned where the cost does not fit.
function fixedWindow.takeIfFits(rule, s, nowUs, cost)
  if s[3] - nowUs > rule.windowUs or counted(rule, s, nowUs) + cost > rule.capacity then
    return nil
  end
  fixedWindow.take(rule, s, nowUs, cost)
  return rule.capacity - s[2], untilEndUs(rule, s, nowUs)
end

function fixedWindow.encode(rule, s)
  return string.format('%d %d %d %s', s[2], s[1], s[3], rule.numbers)
end

-- The state, if it was written under the numbers of this rule.
function fixedWindow.decodeUnder(rule, text)
  local numbersAt = #text - #rule.numbers + 1
  local count, startUs, atUs, place = string.match(text, '^(%d+) (%-?%d+) (%d+) ()')
  if place ~= numbersAt or string.sub(text, numbersAt) ~= rule.numbers then
    return nil
  end
  return { tonumber(startUs), tonumber(count), tonumber(atUs) }
end

-- The long way.

local function repair(rule, s, nowUs)
  if s[3] - nowUs <= rule.windowUs then
    return false
  end
  write(s, windowStartUs(rule, nowUs), s[2], nowUs)
  return true
end

-- What moves to new numbers keeps its date while it counts there.
local function datedUs(rule, writtenUs, nowUs)
  if nowUs < windowStartUs(rule, writtenUs) + rule.windowUs then
    return writtenUs
  end
  return nowUs
end

function fixedWindow.settle(rule, written, s, nowUs)
  local renumbered = written.numbers ~= rule.numbers
  if renumbered then
    repair(written, s, nowUs)
    local count = math.min(counted(written, s, nowUs), rule.capacity)
    local dateUs = datedUs(rule, s[3], nowUs)
    write(s, windowStartUs(rule, dateUs), count, dateUs)
  end
  return repair(rule, s, nowUs) or renumbered
end

function fixedWindow.waitUs(rule, s, nowUs, cost)
  if counted(rule, s, nowUs) + cost <= rule.capacity then
    return 0
  end
  return untilEndUs(rule, s, nowUs)
end

function fixedWindow.give(rule, s, nowUs, cost, ofUs)
  local count = counted(rule, s, nowUs)
  if count == 0 or (ofUs >= 0 and (ofUs < s[1] or ofUs >= s[1] + rule.windowUs)) then
    return false
  end
  write(s, s[1], math.max(0, count - cost), effectiveUs(s, nowUs))
  return true
end

function fixedWindow.cancel()
  return false
end

function fixedWindow.remaining(rule, s, nowUs)
  return math.max(0, rule.capacity - counted(rule, s, nowUs))
end

function fixedWindow.resetUs(rule, s, nowUs)
  if counted(rule, s, nowUs) == 0 then
    return effectiveUs(s, nowUs) - nowUs
  end
  return untilEndUs(rule, s, nowUs)
end

function fixedWindow.decode(text)
  local count, startUs, atUs, numbers = string.match(text, '^(%d+) (%-?%d+) (%d+) (%d+ %d+ [01] %d+)$')
  if not count then
    return nil
  end
  return { tonumber(startUs), tonumber(count), tonumber(atUs) }, numbers
end

return fixedWindow
