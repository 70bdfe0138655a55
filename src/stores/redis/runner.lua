-- The runner: the only part that talks to Redis. It reads every state, decides, and writes what changed, with a time to live each.
--
-- KEYS: the state's key of each part.
-- ARGV: op, nowUs ('' for the server's time), aheadUs and ofUs (-1 for none), then for each part:
--       type, numbers, maxAheadUs, cost, the ticket's numbers and the ticket's words ('' for none).
-- Answers { nowUs, { outcome, remaining, retryUs, resetUs, delayUs, ticket words }, ... }, outcome 0 allowed, 1 limited, 2 impossible.

local FIRST_PART, PART_SIZE = 5, 6
local OUTCOMES = { allowed = 0, limited = 1, impossible = 2 }
-- A clock passed in by a test has nothing to do with the server's, so expiry must not depend on it.
local FOREIGN_CLOCK_TTL_MS = 86400000

local function serverTimeUs()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function wordsFrom(text)
  local words = {}
  for word in string.gmatch(text, '%S+') do
    words[#words + 1] = tonumber(word)
  end
  return words
end

local function wordsText(words)
  local texts = {}
  for k = 1, #words do
    texts[k] = string.format('%.0f', words[k])
  end
  return table.concat(texts, ' ')
end

local function readReply(kind, key)
  if kind == 'string' then
    return redis.pcall('GET', key)
  elseif kind == 'zset' then
    return redis.pcall('ZRANGE', key, 0, -1)
  end
  return redis.pcall('HGETALL', key)
end

-- The state as its algorithm encodes it, or nil: a string, the fields of a hash, or the members of a sorted set in order.
-- False if the key is of another type.
local function readRaw(kind, key)
  local flat = readReply(kind, key)
  if type(flat) ~= 'table' then
    return flat or nil
  elseif flat.err then
    return not string.find(flat.err, 'WRONGTYPE', 1, true) and error(flat.err)
  elseif #flat == 0 then
    return nil
  elseif kind == 'zset' then
    return flat
  end
  local fields = {}
  for k = 1, #flat, 2 do
    fields[flat[k]] = flat[k + 1]
  end
  return fields
end

-- Loads the cell's state, if there is one. False if the key holds something that is not ours.
local function load(cell, key)
  local raw = readRaw(cell.algorithm.kind, key)
  if not raw then
    return raw == nil
  end
  local numbers
  cell.state, numbers = cell.algorithm.decode(raw)
  if not cell.state then
    return false
  end
  if numbers == cell.rule.numbers then
    cell.written = cell.rule
  else
    cell.written = cell.algorithm.ruleNamed(numbers, cell.rule.maxAheadUs)
  end
  return true
end

-- Members and scores, a few thousand at a time: a call takes no more arguments than fit Lua's stack.
local function addMembers(key, members)
  for first = 1, #members, 4000 do
    local args = {}
    for k = first, math.min(first + 3999, #members), 2 do
      args[#args + 1] = members[k + 1]
      args[#args + 1] = members[k]
    end
    redis.call('ZADD', key, unpack(args))
  end
end

local function store(cell, key, ttlMs)
  local algorithm = cell.algorithm
  local raw = algorithm.encode(cell.rule, cell.state)
  if algorithm.kind == 'string' then
    redis.call('SET', key, raw, 'PX', ttlMs)
    return
  end
  -- What a sparse state no longer holds must not stay behind.
  if algorithm.sparse then
    redis.call('DEL', key)
  end
  if algorithm.kind == 'zset' then
    addMembers(key, raw)
  else
    redis.call('HSET', key, unpack(raw))
  end
  redis.call('PEXPIRE', key, ttlMs)
end

local function cellFrom(first)
  local kind, numbers, maxAheadUs = ARGV[first], ARGV[first + 1], tonumber(ARGV[first + 2])
  local algorithm = algorithms[kind]
  local cell = { type = kind, algorithm = algorithm, rule = algorithm.ruleNamed(numbers, maxAheadUs), cost = tonumber(ARGV[first + 3]) }
  if ARGV[first + 4] ~= '' then
    cell.ticket = { numbers = ARGV[first + 4], words = wordsFrom(ARGV[first + 5]) }
  end
  return cell
end

local op, givenUs = ARGV[1], tonumber(ARGV[2])
local nowUs = givenUs or serverTimeUs()
local cells = {}
for k = 1, #KEYS do
  cells[k] = cellFrom(FIRST_PART + (k - 1) * PART_SIZE)
  if not load(cells[k], KEYS[k]) then
    return redis.error_reply('SLUICE the key ' .. KEYS[k] .. ' does not hold a ' .. cells[k].type .. ' state')
  end
end

local verdicts = decide(op, cells, nowUs, tonumber(ARGV[3]), tonumber(ARGV[4]))

local reply = { nowUs }
for k = 1, #cells do
  local verdict = verdicts[k]
  local ttlMs = math.max(1, math.ceil(verdict.resetUs / 1000))
  if givenUs then
    ttlMs = math.max(ttlMs, FOREIGN_CLOCK_TTL_MS)
  end
  if cells[k].changed then
    store(cells[k], KEYS[k], ttlMs)
  elseif cells[k].written and redis.call('PTTL', KEYS[k]) == -1 then
    -- Somebody else took its time to live away: without one it would stay for ever.
    redis.call('PEXPIRE', KEYS[k], ttlMs)
  end
  reply[k + 1] = {
    OUTCOMES[verdict.outcome], verdict.remaining, verdict.retryUs, verdict.resetUs, verdict.delayUs,
    verdict.ticket and wordsText(verdict.ticket) or '',
  }
end
return reply
