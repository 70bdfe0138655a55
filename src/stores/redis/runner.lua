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

local KEYS, ARGV, try, format, type = KEYS, ARGV, redis.pcall, string.format, type

-- A clock passed in by a test has nothing to do with the server's, so expiry must not depend on it: a day at least.
local nowUs, leastTtlMs = tonumber(ARGV[1]), 86400000
if not nowUs then
  local time = redis.call('TIME')
  nowUs, leastTtlMs = time[1] * 1000000 + time[2], 1
end
-- With room for the answer to a lone decision.
local reply = { nowUs, nil, nil }

-- The long way.

-- One piece, because every function in it would be made anew for each call.
local decideLong
-- Where the run begins, and how many keys come before those of the next decision.
local first, key, made, firstError = 2, 0, 0, nil
while first <= #ARGV do
  local decisions, parts = tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])

  -- What the short forms know of each part; nothing at all where one of them has none.
  local shorts = ARGV[first] == 'take -1 -1' and {} or nil
  for k = 1, shorts and parts or 0 do
    local at = first + RUN_SIZE + (k - 1) * PART_SIZE
    local algorithm, cost = algorithms[ARGV[at]], tonumber(ARGV[at + 3])
    local short = algorithm and algorithm.shortForm and cost > 0 and algorithm.shortForm(ARGV[at + 1], cost, nowUs)
    if not short then
      shorts = nil
      break
    end
    short.takeIfFits = algorithm.takeIfFits
    shorts[k] = short
  end

  for _ = 1, decisions do
    local fits, failure = shorts, nil
    for k = 1, fits and parts or 0 do
      local short, raw = shorts[k], try('GET', KEYS[key + k])
      if type(raw) == 'table' then
        fits = nil
        break
      end
      short.raw, short.remaining, short.resetUs = short.takeIfFits(short, raw, nowUs)
      if not short.raw then
        fits = nil
        break
      end
    end

    if not fits then
      -- Nothing was done yet: it is decided from the start.
      decideLong = decideLong or longWay(nowUs, leastTtlMs, reply)
      failure = decideLong(first, key)
    else
      local size = #reply
      for k = 1, parts do
        local short = shorts[k]
        local resetUs = short.resetUs
        local ttlMs = ceil(resetUs / 1000)
        if ttlMs < leastTtlMs then
          ttlMs = leastTtlMs
        end
        local written = try('SET', KEYS[key + k], short.raw, 'PX', format('%d', ttlMs))
        -- Redis refuses the first write of a script or none, unless the user may write some of the keys only.
        if written.err then
          failure = written.err
          -- What the limits before this one said is no answer.
          for place = #reply, size + 1, -1 do
            reply[place] = nil
          end
          break
        end
        reply[size + 2 * k - 1], reply[size + 2 * k] = short.remaining, resetUs
      end
    end

    if failure then
      firstError = firstError or failure
      reply[#reply + 1] = failure
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
