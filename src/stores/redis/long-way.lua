-- Any decision: of several limits, refused, asking, giving back, booking ahead, forgetting, under changed numbers. See runner.lua.

local OUTCOMES = { allowed = -1, limited = -2, impossible = -3 }
local call = redis.call

-- A thousand years are more than any state of ours lasts. What is not a number is no less.
local function isSane(resetUs)
  return resetUs < 31557600000000000
end

local function ttlMs(resetUs)
  return math.max(ceil(resetUs / 1000), leastTtlMs)
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

local READS = {
  string = function(key) return try('GET', key) end,
  zset = function(key) return try('ZRANGE', key, 0, -1) end,
  hash = function(key) return try('HGETALL', key) end,
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

local function refuse(cell, key)
  error({ err = 'SLUICE the key ' .. key .. ' does not hold a ' .. cell.type .. ' state' }, 0)
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
    state, numbers = algorithm.decode(raw)
  end
  if not state then
    refuse(cell, key)
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

local function store(cell, key, ms)
  local algorithm = cell.algorithm
  local raw = algorithm.encode(cell.rule, cell.state)
  if algorithm.kind == 'string' then
    call('SET', key, raw, 'PX', ms)
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
  call('PEXPIRE', key, ms)
end

local function save(cell, key, resetUs)
  if cell.changed then
    store(cell, key, ttlMs(resetUs))
  elseif cell.written and call('PTTL', key) == -1 then
    -- Somebody else took its time to live away: without one it would stay for ever.
    call('PEXPIRE', key, ttlMs(resetUs))
  end
end

local function say(...)
  for k = 1, select('#', ...) do
    reply[#reply + 1] = select(k, ...)
  end
end

local function sayVerdict(verdict, isReservation)
  if verdict.outcome == 'allowed' and verdict.delayUs == 0 and not isReservation then
    say(verdict.remaining, verdict.resetUs)
    return
  end
  say(OUTCOMES[verdict.outcome], verdict.remaining, verdict.retryUs, verdict.resetUs, verdict.delayUs)
  if isReservation then
    say(verdict.ticket and wordsText(verdict.ticket) or '')
  end
end

local function cellAt(first, op)
  local kind = ARGV[first]
  local algorithm = algorithms[kind]
  local cell = {
    type = kind,
    algorithm = algorithm,
    rule = algorithm.ruleNamed(ARGV[first + 1], tonumber(ARGV[first + 2])),
    cost = tonumber(ARGV[first + 3]),
  }
  if op == 'give' and ARGV[first + 4] ~= '' then
    cell.ticket = { numbers = ARGV[first + 4], words = wordsFrom(ARGV[first + 5]) }
  end
  return cell
end

-- What the decisions of the run that begins at `first` have in common.
local function runAt(first)
  local op, aheadUs, ofUs = string.match(ARGV[first], '^(%S+) (%S+) (%S+)$')
  local partSize = op == 'give' and GIVEN_PART_SIZE or PART_SIZE
  local cells, verdicts = {}, {}
  for k = 1, tonumber(ARGV[first + 2]) do
    cells[k], verdicts[k] = cellAt(first + RUN_SIZE + (k - 1) * partSize, op), {}
  end
  return { first = first, op = op, aheadUs = tonumber(aheadUs), ofUs = tonumber(ofUs), cells = cells, verdicts = verdicts }
end

-- One decision, on the keys behind the first `key`.
local function decideOne(run, key)
  local cells, verdicts = run.cells, run.verdicts
  if run.op == 'forget' then
    call('DEL', unpack(KEYS, key + 1, key + #cells))
    say(0)
    return
  end
  for k = 1, #cells do
    load(cells[k], KEYS[key + k])
  end
  decide(run.op, cells, nowUs, run.aheadUs, run.ofUs, verdicts)
  for k = 1, #cells do
    if not isSane(verdicts[k].resetUs) then
      refuse(cells[k], KEYS[key + k])
    end
  end
  for k = 1, #cells do
    save(cells[k], KEYS[key + k], verdicts[k].resetUs)
  end
  for k = 1, #cells do
    sayVerdict(verdicts[k], run.aheadUs >= 0)
  end
end

local run = {}

-- Decides, and returns an error if there is one.
return function(first, key)
  if run.first ~= first then
    run = runAt(first)
  end
  local isDone, failure = pcall(decideOne, run, key)
  if isDone then
    return nil
  end
  return type(failure) == 'table' and failure.err or failure
end
