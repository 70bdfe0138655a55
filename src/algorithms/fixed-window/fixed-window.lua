-- Fixed window: the twin of fixed-window.ts. State: { startUs, count, atUs }. In Redis: a string, `count start time limit window first offset`.

-- The short form of a take that is allowed, for a limit, a cost above zero and a time: a function from what the key holds, or false, and where the
-- state begins and ends in it, to what shall stand there, what is left, when it is idle, how long the key has to live, and whether it does so
-- already and the state is as long as it was. Nothing where the cost does not fit, where the text is from the future, and where it is not a
-- state under the same numbers.
local function shortForm(numbers, cost, nowUs)
  local match, format, sub = string.match, string.format, string.sub
  local limit, windowUs, first, offsetUs = match(numbers, '^(%d+) (%d+) ([01]) (%d+)$')
  local capacity, pattern = tonumber(limit), '^(%d+) (%-?%d+) (%d+) ' .. numbers .. '$'
  windowUs = tonumber(windowUs)
  -- Of a window that begins now, or has begun.
  local newUs = nowUs
  if first == '0' then
    newUs = floor((nowUs - offsetUs) / windowUs) * windowUs + offsetUs
  end
  local newText, ending = format('%d', newUs), format(' %d %s', nowUs, numbers)
  -- Most keys are in that window, and to see it is faster than to read when theirs began.
  local newPattern, tail = '^(%d+) ' .. (newUs < 0 and '%' or '') .. newText .. ' (%d+)()', ' ' .. numbers
  -- What keys hold in that window, by their count: mostly it began for all keys, and many have counted as far.
  local newTexts = {}

  return function(text, from, to)
    local used, startUs, startText, goesOn = cost, newUs, newText, false
    if text then
      local heldText = newText
      local countText, atText, behind = match(text, newPattern, from)
      if not countText or sub(text, behind, to) ~= tail then
        countText, heldText, atText = match(sub(text, from, to), pattern)
      end
      if not countText or atText - nowUs > 0 then
        return nil
      end
      local heldUs = newUs
      if heldText ~= newText then
        heldUs = tonumber(heldText)
        -- It is written again as it stands.
        if heldUs > nowUs or format('%d', heldUs) ~= heldText then
          return nil
        end
      end
      if countText ~= '0' and nowUs < heldUs + windowUs then
        used, startUs, startText, goesOn = countText + used, heldUs, heldText, true
      end
    end
    if used > capacity then
      return nil
    end
    local taken = startUs == newUs and newTexts[used]
    if not taken then
      taken = format('%d ', used) .. startText .. ending
      if startUs == newUs then
        newTexts[used] = taken
      end
    end
    local resetUs = startUs + windowUs - nowUs
    return taken, capacity - used, resetUs, resetUs, goesOn and #taken == to - from + 1
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
  return string.format('%d %d %d %s', s[2], s[1], s[3], rule.numbers)
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
  -- What is ours reads back as it was written.
  local s = { tonumber(startUs), tonumber(count), tonumber(atUs) }
  if fixedWindow.encode({ numbers = numbers }, s) ~= text then
    return nil
  end
  return s, numbers
end

return fixedWindow
