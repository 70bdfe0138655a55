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

local KEYS, ARGV, try, format = KEYS, ARGV, redis.pcall, string.format

-- A clock passed in by a test has nothing to do with the server's, so expiry must not depend on it: a day at least.
local nowUs, leastTtlMs = tonumber(ARGV[1]), 86400000
if not nowUs then
  local time = redis.call('TIME')
  nowUs, leastTtlMs = time[1] * 1000000 + time[2], 1
end
-- With room for the answer to a lone decision.
local reply = { nowUs, nil, nil }

-- The long way.

-- Where the run begins, how many keys come before those of the next decision, and how much of the reply is said.
local first, key, size = 2, 0, 1
-- How many parts a decision has, and their short forms; none at all where one of them has none.
local parts, takes
-- The last time to live, as a number and as Redis wants it: those of a window are alike, and those of keys that were idle.
local lastTtlMs, lastTtl

-- Takes by the short forms, from a part on, and writes only when all have agreed. Says whether they did, and the error if Redis refused to.
local function takeFrom(part)
  local name = KEYS[key + part]
  local held = try('GET', name)
  -- An error is a table with nothing in its places, and no state is empty.
  if held and #held == 0 then
    return false
  end
  local taken, remaining, resetUs = takes[part](held)
  if not taken then
    return false
  end
  reply[size + 2 * part - 1], reply[size + 2 * part] = remaining, resetUs
  if part < parts then
    local fits, failure = takeFrom(part + 1)
    if failure or not fits then
      return fits, failure
    end
  end
  local ttlMs = ceil(resetUs / 1000)
  if ttlMs < leastTtlMs then
    ttlMs = leastTtlMs
  end
  if ttlMs ~= lastTtlMs then
    lastTtlMs, lastTtl = ttlMs, format('%d', ttlMs)
  end
  -- Answered with what it held: Lua has that string already, and would make a table of an OK.
  local before = try('SET', name, taken, 'PX', lastTtl, 'GET')
  -- Redis refuses the first write of a script or none, unless the user may write some of the keys only.
  return true, before and #before == 0 and before.err
end

-- The rest is one piece: a function is made anew for each call, and only what goes on with the next part has to be one.
local decideLong
local made, firstError = 0, nil
while first <= #ARGV do
  parts = tonumber(ARGV[first + 2])
  takes = ARGV[first] == 'take -1 -1' and {} or nil
  for k = 1, takes and parts or 0 do
    local at = first + RUN_SIZE + (k - 1) * PART_SIZE
    local algorithm, cost = algorithms[ARGV[at]], tonumber(ARGV[at + 3])
    local take = algorithm and algorithm.shortForm and cost > 0 and algorithm.shortForm(ARGV[at + 1], cost, nowUs)
    if not take then
      takes = nil
      break
    end
    takes[k] = take
  end

  for _ = 1, tonumber(ARGV[first + 1]) do
    local fits, failure
    if takes then
      fits, failure = takeFrom(1)
    end
    if fits and not failure then
      size = size + 2 * parts
    else
      -- What some of the limits said is no answer.
      for place = size + 1, size + 2 * parts do
        reply[place] = nil
      end
      if not fits then
        -- Nothing was done yet: it is decided from the start.
        decideLong = decideLong or longWay(nowUs, leastTtlMs, reply)
        failure = decideLong(first, key)
      end
      reply[#reply + 1] = failure
      size = #reply
    end

    if failure then
      firstError = firstError or failure
    else
      made = made + 1
    end
    key = key + parts
  end
  first = first + RUN_SIZE + parts * (string.sub(ARGV[first], 1, 4) == 'give' and GIVEN_PART_SIZE or PART_SIZE)
end

-- Where nothing could be decided, the client should see the error as one: some act on what it says.
if made == 0 then
  return redis.error_reply(firstError)
end
return reply
