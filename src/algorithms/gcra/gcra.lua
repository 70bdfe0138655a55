-- GCRA: the twin of gcra.ts. State: a level, { tatUs, part }.
-- In Redis: a string of bytes, as few as can be: the TAT in seven, then the numbers, then the part if there is one. See gcra.md.
--
-- A TAT needs 53 bits. The three above say whether the key expires on a grid, so that most takes need not set its time to live: at 4, 5, 6 and 7
-- it lives until the TAT rounded up to the next multiple of 2^20, 2^25, 2^30 and 2^35 µs, at 0 until the TAT.

local char, pack, unpackBytes = string.char, struct.pack, struct.unpack

-- A whole number as bytes, as few as it needs: seven bits to a byte, the lowest first, and the eighth says that more follow.
local function packed(number)
  if number < 128 then
    return char(number)
  end
  local low = number % 128
  return char(low + 128) .. packed((number - low) / 128)
end

-- The number that begins at a place, and the place behind it; nothing if the bytes end before it does.
local function unpacked(bytes, place)
  local number, unit = 0, 1
  while true do
    local byte = string.byte(bytes, place)
    if not byte then
      return nil
    elseif byte < 128 then
      return number + byte * unit, place + 1
    end
    number, unit, place = number + (byte - 128) * unit, unit * 128, place + 1
  end
end

-- The numbers of a rule. A period is mostly a round number: its digits, and how many zeros follow.
local function packedNumbers(capacity, permits, periodUs)
  local digits, zeros = periodUs, 0
  if digits % 1000000 == 0 then
    digits, zeros = digits / 1000000, 6
  end
  while digits % 10 == 0 do
    digits, zeros = digits / 10, zeros + 1
  end
  return packed(capacity) .. packed(permits) .. packed(digits * 16 + zeros)
end

-- The short form of a take that is allowed, for a limit, a cost above zero and a time: a function from what the key holds, or false, and where the
-- state begins and ends in it, to what shall stand there, what is left, when it is idle, how long the key has to live, and whether it does so
-- already and the state is as long as it was. Nothing where the cost does not fit, and where the bytes are not a state under the same
-- numbers. No function at all where its arithmetic would round.
local function shortForm(numbers, cost, nowUs)
  local capacity, permits, periodUs = string.match(numbers, '^(%d+) (%d+) (%d+)$')
  capacity, permits, periodUs = tonumber(capacity), tonumber(permits), tonumber(periodUs)
  local tolerance, costTime = capacity * periodUs, cost * periodUs
  if cost > capacity or tolerance > MAX_EXACT then
    return nil
  end
  local toleranceUs, costUs = floor(tolerance / permits), floor(costTime / permits)
  local tolerancePart, costPart = tolerance - toleranceUs * permits, costTime - costUs * permits
  local wanted = packedNumbers(capacity, permits, periodUs)
  -- The TAT and the numbers, in one piece: each string that is made on the way has its price.
  local size, layout = 7 + #wanted, '>BI6c' .. #wanted

  return function(bytes, from, to)
    local us, part, endUs, grid = 0, 0, 0, 0
    if bytes then
      local behind = from + size
      if to + 1 < behind then
        return nil
      end
      local high, low, heldNumbers = unpackBytes(layout, bytes, from)
      if heldNumbers ~= wanted then
        return nil
      end
      local highTat = high % 32
      local tatUs = highTat * 281474976710656 + low
      grid = high - highTat
      if grid >= 128 then
        local gridUs = 2 ^ (grid * 5 / 32)
        endUs = tatUs - tatUs % gridUs + gridUs
      elseif grid > 0 then
        return nil
      end
      us = tatUs - nowUs
      if to >= behind then
        part, behind = unpacked(bytes, behind)
        -- What is not a number is neither.
        if behind ~= to + 1 or not (part > 0 and part < permits) then
          return nil
        end
      end
      if us < 0 then
        us, part = 0, 0
      end
    end
    us, part = us + costUs, part + costPart
    if part >= permits then
      us, part = us + 1, part - permits
    end
    if us > toleranceUs or (us == toleranceUs and part > tolerancePart) then
      return nil
    end
    -- No more than the capacity takes, which does not round.
    local remaining = capacity - ceil((us * permits + part) / periodUs)
    local tatUs, resetUs = nowUs + us, us
    if part > 0 then
      resetUs = us + 1
    end
    local isKept = tatUs < endUs
    if not isKept then
      grid, endUs = 0, nowUs + resetUs
      -- On the coarsest grid by which it lives no more than a quarter longer than it must.
      if us >= 4194304 then
        local gridUs = 1048576
        grid = 128
        while us >= 128 * gridUs and grid < 224 do
          grid, gridUs = grid + 32, 32 * gridUs
        end
        endUs = tatUs - tatUs % gridUs + gridUs
      end
    end
    local low = tatUs % 281474976710656
    local taken = pack(layout, grid + (tatUs - low) / 281474976710656, low, wanted)
    if part > 0 then
      taken = taken .. packed(part)
    end
    return taken, remaining, resetUs, endUs - nowUs, isKept and #taken == to - from + 1
  end
end

-- The long way.

local gcra = { kind = 'string', bookable = true, shortForm = shortForm, ruleNamed = levelRuleNamed }

function gcra.fresh(rule, nowUs)
  return { nowUs, 0 }
end

-- On no grid: for whoever sets the time to live to the time until idle.
function gcra.encode(rule, s)
  rule.packed = rule.packed or packedNumbers(rule.capacity, rule.permits, rule.periodUs)
  local bytes = pack('>I7', s[1]) .. rule.packed
  if s[2] == 0 then
    return bytes
  end
  return bytes .. packed(s[2])
end

-- The TAT, and the numbers at their longest: 7 + 5 + 5 + 7 + 5.
local MAX_BYTES = 29

-- The numbers that stand in the bytes from the eighth on.
local function numbersIn(bytes)
  local numbers, place = {}, 8
  while place and place <= #bytes do
    numbers[#numbers + 1], place = unpacked(bytes, place)
  end
  return place and numbers or {}
end

-- The state and the numbers it was written under; nothing at all for what this algorithm did not write.
function gcra.decode(bytes)
  local capacity, permits, period, part = unpack(numbersIn(#bytes > MAX_BYTES and '' or bytes), 1, 4)
  if not period or capacity < 1 or permits < 1 or period < 16 or (part or 0) >= permits then
    return nil
  end
  local high = string.byte(bytes)
  if high >= 128 then
    -- On whichever grid it is: who writes it again sets a time to live.
    bytes = char(high % 32) .. string.sub(bytes, 2)
  elseif high >= 32 then
    return nil
  end
  local zeros = period % 16
  local numbers = string.format('%.0f %.0f %.0f', capacity, permits, (period - zeros) / 16 * 10 ^ zeros)
  local s = { unpackBytes('>I7', bytes), part or 0 }
  -- What is ours reads back as it was written.
  if gcra.encode(levelRuleNamed(numbers, 0), s) ~= bytes then
    return nil
  end
  return s, numbers
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

-- The state for people, as the TypeScript writes it: `TAT burst permits periodUs [part]`.
function gcra.text(s, numbers)
  if s[2] == 0 then
    return string.format('%.0f %s', s[1], numbers)
  end
  return string.format('%.0f %s %.0f', s[1], numbers, s[2])
end

return gcra
