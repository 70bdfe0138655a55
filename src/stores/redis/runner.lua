-- The runner: the only part that talks to Redis. For each decision it reads the states, decides, and writes what changed, with a time to
-- live each. Many decisions may come in one call: each is made as if it had come alone, in the order in which they stand.
--
-- KEYS: the keys of the states, decision after decision, part after part.
-- ARGV: nowUs ('' for the server's time), then runs of decisions that differ in nothing but their keys, each run:
--       op, aheadUs and ofUs (-1 for none), how many decisions, how many parts each has, then for each part:
--       type, numbers, maxAheadUs, cost, the ticket's numbers and the ticket's words ('' for none).
-- Answers { nowUs, ... } with, for each part of each decision: outcome (0 allowed, 1 limited, 2 impossible), remaining, retryUs, resetUs,
-- delayUs, and in a reservation the ticket's words; for `forget` one 0. In place of all that stands the text of an error for a decision
-- that could not be made.

local RUN_SIZE, PART_SIZE = 5, 6
local OUTCOMES = { allowed = 0, limited = 1, impossible = 2 }
-- A clock passed in by a test has nothing to do with the server's, so expiry must not depend on it.
local FOREIGN_CLOCK_TTL_MS = 86400000

local call = redis.call

local function serverTimeUs()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

local givenUs = tonumber(ARGV[1])
local nowUs = givenUs or serverTimeUs()
local reply, size = { nowUs }, 1

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

local READS = {
  string = function(key) return redis.pcall('GET', key) end,
  zset = function(key) return redis.pcall('ZRANGE', key, 0, -1) end,
  hash = function(key) return redis.pcall('HGETALL', key) end,
}

local function fieldsFrom(flat)
  local fields = {}
  for k = 1, #flat, 2 do
    fields[flat[k]] = flat[k + 1]
  end
  return fields
end

-- The state as its algorithm encodes it, or nil: a string, the fields of a hash, or the members of a sorted set in order.
-- False if the key is of another type.
local function readRaw(kind, key)
  local raw = READS[kind](key)
  if type(raw) ~= 'table' then
    return raw or nil
  elseif raw.err then
    return not string.find(raw.err, 'WRONGTYPE', 1, true) and error(raw, 0)
  elseif #raw == 0 then
    return nil
  end
  return kind == 'hash' and fieldsFrom(raw) or raw
end

local function load(cell, key)
  local algorithm, rule = cell.algorithm, cell.rule
  local raw = readRaw(algorithm.kind, key)
  cell.written = nil
  if raw == nil then
    return
  end
  local state, numbers
  if raw then
    state, numbers = algorithm.decode(raw, rule)
  end
  if not state then
    error({ err = 'SLUICE the key ' .. key .. ' does not hold a ' .. cell.type .. ' state' }, 0)
  end
  cell.state = state
  cell.written = numbers == rule.numbers and rule or algorithm.ruleNamed(numbers, rule.maxAheadUs)
end

-- Members and scores, a few thousand at a time: a call takes no more arguments than fit Lua's stack.
local function addMembers(key, members)
  for first = 1, #members, 4000 do
    local args = {}
    for k = first, math.min(first + 3999, #members), 2 do
      args[#args + 1] = members[k + 1]
      args[#args + 1] = members[k]
    end
    call('ZADD', key, unpack(args))
  end
end

local function store(cell, key, ttlMs)
  local algorithm = cell.algorithm
  local raw = algorithm.encode(cell.rule, cell.state)
  if algorithm.kind == 'string' then
    call('SET', key, raw, 'PX', ttlMs)
    return
  end
  -- What a sparse state no longer holds must not stay behind.
  if algorithm.sparse then
    call('DEL', key)
  end
  if algorithm.kind == 'zset' then
    addMembers(key, raw)
  else
    call('HSET', key, unpack(raw))
  end
  call('PEXPIRE', key, ttlMs)
end

local function save(cell, key, resetUs)
  local ttlMs = ceil(resetUs / 1000)
  if ttlMs < 1 then
    ttlMs = 1
  end
  if givenUs and ttlMs < FOREIGN_CLOCK_TTL_MS then
    ttlMs = FOREIGN_CLOCK_TTL_MS
  end
  if cell.changed then
    store(cell, key, ttlMs)
  elseif cell.written and call('PTTL', key) == -1 then
    -- Somebody else took its time to live away: without one it would stay for ever.
    call('PEXPIRE', key, ttlMs)
  end
end

local function answerWith(verdict, reserved)
  reply[size + 1], reply[size + 2], reply[size + 3] = OUTCOMES[verdict.outcome], verdict.remaining, verdict.retryUs
  reply[size + 4], reply[size + 5] = verdict.resetUs, verdict.delayUs
  size = size + 5
  if reserved then
    size = size + 1
    reply[size] = verdict.ticket and wordsText(verdict.ticket) or ''
  end
end

-- One decision of one limit, by the short form of its algorithm. Tells whether that was possible.
local function takeShort(cell, key)
  local rule = cell.rule
  load(cell, key)
  if cell.written == nil then
    cell.state = cell.algorithm.fresh(rule, nowUs)
  elseif cell.written ~= rule then
    return false
  end
  local remaining, resetUs = cell.algorithm.takeIfFits(rule, cell.state, nowUs, cell.cost)
  if not remaining then
    return false
  end
  cell.changed = true
  save(cell, key, resetUs)
  reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4], reply[size + 5] = 0, remaining, 0, resetUs, 0
  size = size + 5
  return true
end

-- One decision, on the keys from `first` on.
local function run(op, cells, verdicts, first, aheadUs, ofUs, short)
  if short and takeShort(cells[1], KEYS[first]) then
    return
  end
  if op == 'forget' then
    call('DEL', unpack(KEYS, first, first + #cells - 1))
    size = size + 1
    reply[size] = 0
    return
  end
  for k = 1, #cells do
    load(cells[k], KEYS[first + k - 1])
  end
  decide(op, cells, nowUs, aheadUs, ofUs, verdicts)
  for k = 1, #cells do
    save(cells[k], KEYS[first + k - 1], verdicts[k].resetUs)
  end
  for k = 1, #cells do
    answerWith(verdicts[k], aheadUs >= 0)
  end
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

local function hasShortForm(op, cells, aheadUs)
  local cell = cells[1]
  return op == 'take' and #cells == 1 and aheadUs < 0 and cell.algorithm.takeIfFits and cell.cost > 0 and cell.cost <= cell.rule.capacity
end

local at, key, made, firstError = 2, 1, 0, nil
while at <= #ARGV do
  local op, aheadUs, ofUs = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local decisions, parts = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local cells, verdicts = {}, {}
  for k = 1, parts do
    cells[k], verdicts[k] = cellFrom(at + RUN_SIZE + (k - 1) * PART_SIZE), {}
  end
  local short = hasShortForm(op, cells, aheadUs)
  for _ = 1, decisions do
    local done, failure = pcall(run, op, cells, verdicts, key, aheadUs, ofUs, short)
    if done then
      made = made + 1
    else
      failure = type(failure) == 'table' and failure.err or failure
      firstError = firstError or failure
      size = size + 1
      reply[size] = failure
    end
    key = key + parts
  end
  at = at + RUN_SIZE + parts * PART_SIZE
end

-- Where nothing could be decided, the client should see the error as one: some act on what it says.
if made == 0 then
  return redis.error_reply(firstError)
end
return reply
