-- The runner: reads the states, has them decided, and writes what changed, with a time to live each. Many decisions may come in one call:
-- each is made as if it had come alone, in the order in which they stand.
--
-- KEYS: the keys of the states, decision after decision, part after part.
-- ARGV: nowUs ('' for the server's time), then runs of decisions that differ in nothing but their keys, each run:
--       the verb (`op aheadUs ofUs`, -1 for none), how many decisions, how many parts each has, then for each part:
--       type, numbers, maxAheadUs, cost, and to `give` the ticket's numbers and the ticket's words ('' for none).
-- Answers { nowUs, ... } with for each part of each decision: what remains and resetUs, if it was allowed and may be acted on at once; else
-- -1 allowed, -2 limited or -3 impossible, then remaining, retryUs, resetUs, delayUs, and in a reservation the ticket's words. For `forget`
-- one 0. In place of all that stands the text of an error for a decision that could not be made.
--
-- Most decisions take and are allowed. Some algorithms have a short form for that, which is all that is made here. Everything else is
-- long-way.lua, which is made when the first decision needs it.

local RUN_SIZE, PART_SIZE, GIVEN_PART_SIZE = 3, 4, 6
local PLAIN_TAKE = 'take -1 -1'
-- A clock passed in by a test has nothing to do with the server's, so expiry must not depend on it.
local FOREIGN_CLOCK_TTL_MS = 86400000

local call, try = redis.call, redis.pcall

local givenUs = tonumber(ARGV[1])
local nowUs = givenUs
if not givenUs then
  local time = call('TIME')
  nowUs = time[1] * 1000000 + time[2]
end
local reply, size = { nowUs }, 1

-- A thousand years are more than any state of ours lasts. What is not a number is no less.
local function isSane(resetUs)
  return resetUs < 31557600000000000
end

local function ttlMs(resetUs)
  local ms = ceil(resetUs / 1000)
  if givenUs and ms < FOREIGN_CLOCK_TTL_MS then
    return FOREIGN_CLOCK_TTL_MS
  elseif ms < 1 then
    return 1
  end
  return ms
end

local function cellFrom(first)
  local kind = ARGV[first]
  local algorithm = algorithms[kind]
  return {
    type = kind,
    algorithm = algorithm,
    rule = algorithm.ruleNamed(ARGV[first + 1], tonumber(ARGV[first + 2])),
    cost = tonumber(ARGV[first + 3]),
  }
end

local function partSize(first)
  return string.sub(ARGV[first], 1, 4) == 'give' and GIVEN_PART_SIZE or PART_SIZE
end

-- The long way.

-- The cells of a run whose decisions have a short form.
local function shortCells(first, parts)
  if ARGV[first] ~= PLAIN_TAKE then
    return nil
  end
  local cells = {}
  for k = 1, parts do
    local at = first + RUN_SIZE + (k - 1) * PART_SIZE
    local algorithm = algorithms[ARGV[at]]
    if not (algorithm and algorithm.takeIfFits) then
      return nil
    end
    local cell = cellFrom(at)
    if cell.cost == 0 or cell.cost > cell.rule.capacity then
      return nil
    end
    cells[k] = cell
  end
  return cells
end

-- The state that a key holds under the numbers of the cell, or a fresh one; nil for anything else.
local function plainState(cell, key)
  local raw = try('GET', key)
  if not raw then
    return cell.algorithm.fresh(cell.rule, nowUs)
  elseif type(raw) == 'table' then
    return nil
  end
  return cell.algorithm.decodeUnder(cell.rule, raw)
end

-- Takes by the short form. Tells whether that was the decision; otherwise nothing was done. An error is returned with it.
local function takeShort(cells, firstKey)
  for k = 1, #cells do
    local cell = cells[k]
    local state = plainState(cell, KEYS[firstKey + k - 1])
    if not state then
      return false
    end
    cell.state = state
    cell.remaining, cell.resetUs = cell.algorithm.takeIfFits(cell.rule, state, nowUs, cell.cost)
    -- A state that is not ours in disguise may say anything: the long way says what it is.
    if not cell.remaining or cell.remaining < 0 or not isSane(cell.resetUs) then
      return false
    end
  end
  for k = 1, #cells do
    local cell = cells[k]
    local written = try('SET', KEYS[firstKey + k - 1], cell.algorithm.encode(cell.rule, cell.state), 'PX', ttlMs(cell.resetUs))
    -- Redis refuses the first write of a script or none.
    if written.err then
      return true, written.err
    end
    reply[size + 1], reply[size + 2] = cell.remaining, cell.resetUs
    size = size + 2
  end
  return true
end

local decideLong
local first, key, made, firstError = 2, 1, 0, nil
while first <= #ARGV do
  local decisions, parts = tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])
  local cells = shortCells(first, parts)
  for _ = 1, decisions do
    local isDecided, failure = false, nil
    if cells then
      isDecided, failure = takeShort(cells, key)
    end
    if not isDecided then
      decideLong = decideLong or longWay()
      failure = decideLong(first, key)
    end
    if failure then
      firstError = firstError or failure
      size = size + 1
      reply[size] = failure
    else
      made = made + 1
    end
    key = key + parts
  end
  first = first + RUN_SIZE + parts * partSize(first)
end

-- Where nothing could be decided, the client should see the error as one: some act on what it says.
if made == 0 then
  return redis.error_reply(firstError)
end
return reply
