-- GCRA: the twin of gcra.ts. State: a level, { tatUs, part }.
-- In Redis: a string of bytes, as few as can be: the TAT in seven, then the numbers, then the part if there is one. See gcra.md.

local gcra = { kind = 'string', bookable = true, ruleNamed = levelRuleNamed }

function gcra.fresh(rule, nowUs)
  return { nowUs, 0 }
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

-- A whole number in as many bytes as it needs: seven bits each, the lowest first, and the eighth says that more follow.
local function packed(number)
  local bytes = ''
  while number >= 128 do
    bytes = bytes .. string.char(number % 128 + 128)
    number = floor(number / 128)
  end
  return bytes .. string.char(number)
end

-- The numbers of a rule. A period is mostly a round number: its digits, and how many zeros follow.
local function packedNumbers(rule)
  local digits, zeros = rule.periodUs, 0
  if digits % 1000000 == 0 then
    digits, zeros = digits / 1000000, 6
  end
  while digits % 10 == 0 do
    digits, zeros = digits / 10, zeros + 1
  end
  return packed(rule.capacity) .. packed(rule.permits) .. packed(digits * 16 + zeros)
end

function gcra.encode(rule, s)
  rule.packed = rule.packed or packedNumbers(rule)
  local bytes = struct.pack('>I7', s[1]) .. rule.packed
  if s[2] == 0 then
    return bytes
  end
  return bytes .. packed(s[2])
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

-- The state, if it was written under the numbers of this rule.
function gcra.decodeUnder(rule, bytes)
  rule.packed = rule.packed or packedNumbers(rule)
  local size = 7 + #rule.packed
  if string.sub(bytes, 8, size) ~= rule.packed then
    return nil
  elseif #bytes == size then
    return { struct.unpack('>I7', bytes), 0 }
  end
  local part, place = unpacked(bytes, size + 1)
  return place == #bytes + 1 and part > 0 and part < rule.permits and { struct.unpack('>I7', bytes), part } or nil
end

-- The long way.

-- No TAT lies further ahead: the latest time there is, a hundred years to drain, and what may be booked on top.
local MAX_TAT_US = 10000000000000000
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
  local tatUs = period and struct.unpack('>I7', bytes)
  if not period or tatUs > MAX_TAT_US or capacity < 1 or permits < 1 or period < 16 or (part or 0) >= permits then
    return nil
  end
  local zeros = period % 16
  local numbers = string.format('%.0f %.0f %.0f', capacity, permits, (period - zeros) / 16 * 10 ^ zeros)
  local s = { tatUs, part or 0 }
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
