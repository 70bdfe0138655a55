-- Fixed window: the twin of fixed-window.ts. State: { startUs, count, atUs }.
-- In Redis: a string of bytes: the time in seven, with 32 added to the first; the numbers (see packed.lua); how long before that time the window
-- began, in as many bytes as the longest such time needs; and the count, in as many as the limit needs.

local pack, unpackBytes = struct.pack, struct.unpack

-- The layout under these numbers, which are packed, for struct.pack and struct.unpack, and its size.
local function layoutOf(numbers, capacity, windowUs)
  local sinceSize, countSize = bytesFor(windowUs - 1), bytesFor(capacity)
  return '>BI6c' .. #numbers .. 'I' .. sinceSize .. 'I' .. countSize, 7 + #numbers + sinceSize + countSize
end

-- The short form of a take that is allowed, for a limit (its numbers, a colon, and the same packed), a cost above zero and a time: a function
-- from what the key holds, or false, and where the state begins and ends in it, to what shall stand there, what is left, when it is idle, how
-- long the key has to live, and whether it does so already and the state is as long as it was. Nothing where the cost does not fit, where the
-- state is from the future, and where the bytes are not a state under the same numbers.
local function shortForm(numbers, cost, nowUs)
  local capacity, windowUs, first, offsetUs, wanted = string.match(numbers, '^(%d+) (%d+) ([01]) (%d+):(.*)$')
  capacity, windowUs = tonumber(capacity), tonumber(windowUs)
  local layout, size = layoutOf(wanted, capacity, windowUs)
  -- Of a window that begins now, or has begun.
  local newUs = nowUs
  if first == '0' then
    newUs = floor((nowUs - offsetUs) / windowUs) * windowUs + offsetUs
  end
  local nowLow = nowUs % 281474976710656
  local nowHigh = 32 + (nowUs - nowLow) / 281474976710656

  return function(bytes, from, to)
    local used, startUs, goesOn = cost, newUs, false
    if bytes then
      if to - from + 1 ~= size then
        return nil
      end
      local high, low, heldNumbers, sinceUs, count = unpackBytes(layout, bytes, from)
      local atUs = (high - 32) * 281474976710656 + low
      if heldNumbers ~= wanted or high < 32 or atUs > nowUs or sinceUs >= windowUs or count > capacity then
        return nil
      end
      if count > 0 and nowUs < atUs - sinceUs + windowUs then
        used, startUs, goesOn = used + count, atUs - sinceUs, true
      end
    end
    if used > capacity then
      return nil
    end
    local resetUs = startUs + windowUs - nowUs
    return pack(layout, nowHigh, nowLow, wanted, nowUs - startUs, used), capacity - used, resetUs, resetUs, goesOn
  end
end

-- The long way.

local fixedWindow = { kind = 'string', bookable = false, shortForm = shortForm }

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
  return floor((atUs - rule.offsetUs) / rule.windowUs) * rule.windowUs + rule.offsetUs
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

function fixedWindow.encode(rule, s)
  rule.packed = rule.packed or packedNumbers(rule.numbers)
  local low = s[3] % 281474976710656
  local high = 32 + (s[3] - low) / 281474976710656
  return pack((layoutOf(rule.packed, rule.capacity, rule.windowUs)), high, low, rule.packed, s[3] - s[1], s[2])
end

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

function fixedWindow.enteredUs(s)
  return s[3]
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

-- The state and the numbers it was written under; nothing at all for what this algorithm did not write.
function fixedWindow.decode(bytes)
  local numbers, place = unpackedNumbers(bytes, 8, 4)
  local rule = numbers and string.match(numbers, '^[^0]%d* [^0]%d* [01] %d+$') and fixedWindow.ruleNamed(numbers, 0)
  local layout, size
  if rule then
    layout, size = layoutOf(string.sub(bytes, 8, place - 1), rule.capacity, rule.windowUs)
  end
  local high = string.byte(bytes)
  if #bytes ~= size or high < 32 or high >= 64 then
    return nil
  end
  local _, low, _, sinceUs, count = unpackBytes(layout, bytes)
  -- What is ours was counted in its window, and no more than fits.
  if sinceUs >= rule.windowUs or count > rule.capacity then
    return nil
  end
  local atUs = (high - 32) * 281474976710656 + low
  return { atUs - sinceUs, count, atUs }, numbers
end

-- The state for people, as the TypeScript writes it: `count start time limit window first offset`.
function fixedWindow.text(s, numbers)
  return string.format('%d %d %d %s', s[2], s[1], s[3], numbers)
end

return fixedWindow
