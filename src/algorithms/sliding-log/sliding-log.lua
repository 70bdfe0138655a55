-- Sliding log: the twin of sliding-log.ts. State: { at = atUs, total = permits, then entries { timeUs, count } from 1 on, oldest first }.
-- In Redis: a sorted set, one member `time count` for each microsecond with admissions, and one `at ... limit ...` with score 0.

local slidingLog = { kind = 'zset', bookable = false, sparse = true }

local function effectiveUs(s, nowUs)
  return math.max(s.at, nowUs)
end

-- The oldest entry that still counts.
local function firstLive(rule, s, nowUs)
  local leftUs = effectiveUs(s, nowUs) - rule.windowUs
  local entry = 1
  while s[entry] and s[entry][1] <= leftUs do
    entry = entry + 1
  end
  return entry
end

local function usedAt(rule, s, nowUs)
  local used = s.total
  for entry = 1, firstLive(rule, s, nowUs) - 1 do
    used = used - s[entry][2]
  end
  return used
end

local function dropDead(rule, s, nowUs)
  s.total = usedAt(rule, s, nowUs)
  local live, size = firstLive(rule, s, nowUs), #s
  for entry = 1, size do
    s[entry] = s[entry + live - 1]
  end
end

local function entryAt(rule, s, nowUs, timeUs)
  for entry = firstLive(rule, s, nowUs), #s do
    if s[entry][1] == timeUs then
      return entry
    end
  end
  return nil
end

local function giveEntry(s, entry, cost)
  local given = math.min(s[entry][2], cost)
  s.total = s.total - given
  s[entry][2] = s[entry][2] - given
  if s[entry][2] == 0 then
    table.remove(s, entry)
  end
  return given
end

local function giveNewest(s, cost)
  local left = cost
  while left > 0 and #s > 0 do
    left = left - giveEntry(s, #s, left)
  end
end

local function gather(s, atUs, used)
  for entry = #s, 1, -1 do
    s[entry] = nil
  end
  s.at, s.total = atUs, used
  if used > 0 then
    s[1] = { atUs, used }
  end
end

-- What moves to new numbers keeps its date while it counts there.
local function datedUs(rule, writtenUs, nowUs)
  if nowUs - writtenUs < rule.windowUs then
    return writtenUs
  end
  return nowUs
end

local function repair(rule, s, nowUs)
  if s.at - nowUs <= rule.windowUs then
    return false
  end
  gather(s, nowUs, usedAt(rule, s, s.at))
  return true
end

function slidingLog.ruleNamed(numbers, maxAheadUs)
  local limit, windowUs = string.match(numbers, '^(%d+) (%d+)$')
  return { capacity = tonumber(limit), numbers = numbers, windowUs = tonumber(windowUs), maxAheadUs = maxAheadUs }
end

function slidingLog.fresh(rule, nowUs)
  return { at = nowUs, total = 0 }
end

function slidingLog.settle(rule, written, s, nowUs)
  local renumbered = written.numbers ~= rule.numbers
  if renumbered then
    repair(written, s, nowUs)
    local used = math.min(usedAt(written, s, nowUs), rule.capacity)
    gather(s, datedUs(rule, s.at, nowUs), used)
  end
  return repair(rule, s, nowUs) or renumbered
end

function slidingLog.waitUs(rule, s, nowUs, cost)
  local surplus = usedAt(rule, s, nowUs) + cost - rule.capacity
  if surplus <= 0 then
    return 0
  end
  local entry = firstLive(rule, s, nowUs)
  surplus = surplus - s[entry][2]
  while surplus > 0 do
    entry = entry + 1
    surplus = surplus - s[entry][2]
  end
  return s[entry][1] + rule.windowUs - nowUs
end

function slidingLog.take(rule, s, nowUs, cost)
  dropDead(rule, s, nowUs)
  local atUs = effectiveUs(s, nowUs)
  local newest = s[#s]
  if newest and newest[1] == atUs then
    newest[2] = newest[2] + cost
  else
    s[#s + 1] = { atUs, cost }
  end
  s.total = s.total + cost
  s.at = atUs
end

function slidingLog.enteredUs(s)
  return s.at
end

function slidingLog.give(rule, s, nowUs, cost, ofUs)
  if ofUs < 0 then
    if usedAt(rule, s, nowUs) == 0 then
      return false
    end
    dropDead(rule, s, nowUs)
    giveNewest(s, cost)
  else
    if not entryAt(rule, s, nowUs, ofUs) then
      return false
    end
    dropDead(rule, s, nowUs)
    giveEntry(s, entryAt(rule, s, nowUs, ofUs), cost)
  end
  s.at = effectiveUs(s, nowUs)
  return true
end

function slidingLog.cancel()
  return false
end

function slidingLog.remaining(rule, s, nowUs)
  return math.max(0, rule.capacity - usedAt(rule, s, nowUs))
end

function slidingLog.resetUs(rule, s, nowUs)
  if usedAt(rule, s, nowUs) == 0 then
    return effectiveUs(s, nowUs) - nowUs
  end
  return s[#s][1] + rule.windowUs - nowUs
end

-- Members and scores, as ZADD wants them but for the order: member first.
function slidingLog.encode(rule, s)
  local members = { string.format('at %.0f limit %s', s.at, rule.numbers), '0' }
  for entry = 1, #s do
    local time = string.format('%.0f', s[entry][1])
    members[#members + 1] = time .. string.format(' %.0f', s[entry][2])
    members[#members + 1] = time
  end
  return members
end

-- From the members in order of their scores.
function slidingLog.decode(members)
  local s, numbers = { total = 0 }, nil
  for k = 1, #members do
    local at, limit = string.match(members[k], '^at (%d+) limit (%d+ %d+)$')
    local time, count = string.match(members[k], '^(%d+) (%d+)$')
    if at and not s.at then
      s.at, numbers = tonumber(at), limit
    elseif time then
      s[#s + 1] = { tonumber(time), tonumber(count) }
      s.total = s.total + tonumber(count)
    else
      return nil
    end
  end
  if not s.at then
    return nil
  end
  return s, numbers
end

return slidingLog
