-- The runner: reads the states, has them decided, and writes what changed, with a time to live each. Many decisions may come in one call:
-- each is made as if it had come alone, in the order in which they stand.
--
-- KEYS: the keys of the states, decision after decision.
-- ARGV: nowUs ('' for the server's time), then runs of decisions that differ in nothing but their keys, each run:
--       the verb (`op aheadUs ofUs`, -1 for none), how many decisions, how many parts each has, then for each part:
--       type, numbers (and behind a colon the same packed, if states carry them), maxAheadUs, cost, and to `give` the ticket's numbers and the
--       ticket's words ('' for none).
--       The parts of a decision have a key each, in their order. Where some share a key (see sections.lua), how many keys a decision has
--       stands behind the number of parts, and behind each type which of them it is and the name of the section ('' if it is alone there).
--       A plain call has nothing but a part: each key is a decision, which takes by it, on the server's time (a type is no number). No key comes twice.
-- Answers { nowUs, ... } with for each part of each decision: what remains and resetUs, if it was allowed and may be acted on at once; else
-- -1 allowed, -2 limited or -3 impossible, then remaining, retryUs, resetUs, delayUs, and in a reservation the ticket's words; where it was
-- entered later than nowUs, -4 and by how much before all that. For `forget` one 0. In place of all that stands the text of an error for a decision that could not be made.
--
-- Most decisions take and are allowed. Some algorithms have a short form for that, which is all that is made here. Everything else is
-- long-way.lua, which is made when the first decision needs it.

local KEYS, ARGV, try = KEYS, ARGV, redis.pcall

-- A clock passed in by a test has nothing to do with the server's: a key lives a day at least from when its time to live is set.
local nowUs, leastTtlMs = tonumber(ARGV[1]), 86400000
if not nowUs then
  local time = redis.call('TIME')
  nowUs, leastTtlMs = time[1] * 1000000 + time[2], 1
end
-- With room for the answer to a lone decision: tables that grow are made twice.
local reply = { nowUs, nil, nil }

-- The long way.

-- It is one piece: a function is made anew for each call.
local TAKE, RUN_SIZE, PART_SIZE, GIVEN_PART_SIZE = 'take -1 -1', 3, 4, 6
-- A call takes no more arguments than fit Lua's stack.
local MOST_READ = 4000
-- Where the run begins, how many keys come before those of the next decision, and how much of the reply is said.
local first, key, size = 2, 0, 1
-- What the keys of a decision shall hold, how long each has to live, and whether it does so already.
local taken, livesUs, isKept = { nil }, { nil }, { nil }
-- The last time to live, as a number and as Redis wants it: those of a window are alike, and those of keys that were idle.
local lastTtlMs, lastTtl
local decideLong
local made, firstError = 0, nil

while first <= #ARGV do
  local verb, count, parts, partsAt = TAKE, #KEYS, 1, 1
  local isPlain = #ARGV == PART_SIZE
  if not isPlain then
    verb, count, parts, partsAt = ARGV[first], tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]), first + RUN_SIZE
  end
  local keys = parts
  local partSize = string.sub(verb, 1, 4) == 'give' and GIVEN_PART_SIZE or PART_SIZE
  -- The short forms, one for each key of a decision; none at all where one of them has none.
  local forms
  if not parts then
    parts, keys = string.match(ARGV[first + 2], '^(%d+) (%d+)$')
    parts, keys = tonumber(parts), tonumber(keys)
    forms = verb == TAKE and sectionForms(partsAt, partSize, parts, nowUs, reply)
  elseif parts == 1 and verb == TAKE then
    local shortForm, cost = shortForms[ARGV[partsAt]], tonumber(ARGV[partsAt + 3])
    local form = shortForm and cost > 0 and shortForm(ARGV[partsAt + 1], cost, nowUs)
    forms = form and { form }
  end

  -- Of many keys what they hold is read in one go, and for those that may come again it is noted what they hold by now.
  local read, latest
  if count > 1 then
    read, latest = {}, not isPlain and {}
    if forms and count * keys <= MOST_READ then
      read = try('MGET', unpack(KEYS, key + 1, key + count * keys))
    end
  end

  for n = 0, count - 1 do
    local fits, failure = forms, nil
    for k = 1, fits and keys or 0 do
      local name, held = KEYS[key + k], nil
      if latest then
        held = latest[name]
      end
      if held == nil and read then
        held = read[n * keys + k]
      end
      -- What MGET finds nothing in may be of another type, and it may not be allowed to.
      held = held or try('GET', name)
      -- An error is a table with nothing in its places, and no state is empty.
      local value, remaining, resetUs
      if not held or #held > 0 then
        value, remaining, resetUs, livesUs[k], isKept[k] = forms[k](held, 1, held and #held, size, name)
      end
      if not value then
        fits = false
        break
      end
      taken[k] = value
      -- Sections have said what they have to say.
      if remaining then
        reply[size + 1], reply[size + 2] = remaining, resetUs
      end
    end

    -- Nothing is written before all have agreed.
    for k = 1, fits and keys or 0 do
      local name, value = KEYS[key + k], taken[k]
      -- In place, where it may be called: neither its time to live nor its memory is touched.
      if not isKept[k] or try('SETRANGE', name, '0', value) ~= #value then
        local ttlMs = ceil(livesUs[k] / 1000)
        if ttlMs < leastTtlMs then
          ttlMs = leastTtlMs
        end
        if ttlMs ~= lastTtlMs then
          lastTtlMs, lastTtl = ttlMs, string.format('%d', ttlMs)
        end
        -- Answered with what it held: Lua has that string already, and would make a table of an OK.
        local before = try('SET', name, value, 'PX', lastTtl, 'GET')
        if before and #before == 0 then
          -- Redis refuses the first write of a script or none, unless the user may write some of the keys only.
          failure = before.err
          break
        end
      end
      if latest then
        latest[name] = value
      end
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
        failure = decideLong(partsAt, partSize, verb, parts, key)
      end
      reply[#reply + 1] = failure
      size = #reply
      for k = 1, latest and keys or 0 do
        latest[KEYS[key + k]] = false
      end
    end

    if failure then
      firstError = firstError or failure
    else
      made = made + 1
    end
    key = key + keys
  end
  first = partsAt + parts * partSize
end

-- Where nothing could be decided, the client should see the error as one: some act on what it says.
if made == 0 then
  return redis.error_reply(firstError)
end
return reply
