-- GCRA: the twin of gcra.ts. State: a level, { tatUs, part }.
-- In Redis: a string of bytes, as few as can be: the TAT in seven, then the numbers (see packed.lua), then the part if there is one. See gcra.md.
--
-- A TAT needs 53 bits. The three above say whether the key expires on a grid, so that most takes need not set its time to live: at 4, 5, 6 and 7
-- it lives until the TAT rounded up to the next multiple of 2^20, 2^25, 2^30 and 2^35 µs, at 0 until the TAT.

local pack, unpackBytes = struct.pack, struct.unpack

-- The short form of a take that is allowed, for a limit (its numbers, a colon, and the same packed), a cost above zero and a time: a function
-- from what the key holds, or false, and where the state begins and ends in it, to what shall stand there, what is left, when it is idle, how
-- long the key has to live, and whether it does so already and the state is as long as it was. Nothing where the cost does not fit, and where
-- the bytes are not a state under the same numbers. No function at all where its arithmetic would round.
local function shortForm(numbers, cost, nowUs)
  local capacity, permits, periodUs, wanted = string.match(numbers, '^(%d+) (%d+) (%d+):(.*)$')
  capacity, permits, periodUs = tonumber(capacity), tonumber(permits), tonumber(periodUs)
  local tolerance, costTime = capacity * periodUs, cost * periodUs
  if cost > capacity or tolerance > MAX_EXACT then
    return nil
  end
  local toleranceUs, costUs = floor(tolerance / permits), floor(costTime / permits)
  local tolerancePart, costPart = tolerance - toleranceUs * permits, costTime - costUs * permits
  -- The TAT and the numbers, in one piece: each string that is made on the way has its price.
  local size, layout = 7 + #wanted, '>BI6c' .. #wanted
  local partSize = bytesFor(permits - 1)

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
        if to + 1 ~= behind + partSize then
          return nil
        end
        part = unpackBytes('>I' .. partSize, bytes, behind)
        if part == 0 or part >= permits then
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
      taken = taken .. pack('>I' .. partSize, part)
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
  rule.packed = rule.packed or packedNumbers(rule.numbers)
  local bytes = pack('>I7', s[1]) .. rule.packed
  if s[2] == 0 then
    return bytes
  end
  return bytes .. pack('>I' .. bytesFor(rule.permits - 1), s[2])
end

-- The state and the numbers it was written under; nothing at all for what this algorithm did not write.
function gcra.decode(bytes)
  local numbers, place = unpackedNumbers(bytes, 8, 3)
  local permits = tonumber(string.match(numbers or '', '^[^0]%d* ([^0]%d*) [^0]%d*$'))
  if not permits then
    return nil
  end
  local high, part = string.byte(bytes), 0
  if high >= 32 and high < 128 then
    return nil
  elseif place <= #bytes then
    local partSize = bytesFor(permits - 1)
    if #bytes + 1 ~= place + partSize then
      return nil
    end
    part = unpackBytes('>I' .. partSize, bytes, place)
    if part == 0 or part >= permits then
      return nil
    end
  end
  -- On whichever grid it is: who writes it again sets a time to live.
  return { high % 32 * 281474976710656 + unpackBytes('>I6', bytes, 2), part }, numbers
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

function gcra.enteredUs(_s, nowUs)
  return nowUs
end

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
