-- Any decision: of several limits, refused, asking, giving back, booking ahead, forgetting, under changed numbers. See runner.lua.

local OUTCOMES, ENTERED_LATER = { allowed = -1, limited = -2, impossible = -3 }, -4
-- The algorithms whose states are strings, which may be sections.
local STRINGS = { 'gcra', 'fixedWindow' }
local KEYS, ARGV, call, try = KEYS, ARGV, redis.call, redis.pcall

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

-- What the sections of a key hold, or false if it holds something else.
local function readSections(key)
  local text = readRaw('string', key)
  if text == nil then
    return { states = {}, others = {}, isMine = {}, mine = {}, longestUs = 0 }
  end
  local names, states = sectionsIn(text or '')
  return names and { states = states, others = names, isMine = {}, mine = {}, longestUs = 0, isThere = true } or false
end

-- The state of a cell as it stands in Redis, nil if there is none, false if the key is none of ours. `shared`: the sections that were read
-- for the decision, by key.
local function rawOf(cell, key, shared)
  if not cell.name then
    return readRaw(cell.algorithm.kind, key)
  end
  if shared[key] == nil then
    shared[key] = readSections(key)
  end
  cell.sections = shared[key]
  if not cell.sections then
    return false
  end
  cell.sections.isMine[cell.name] = true
  return cell.sections.states[cell.name]
end

local function load(cell, key, shared)
  local algorithm, rule = cell.algorithm, cell.rule
  local raw = rawOf(cell, key, shared)
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

-- A state of which the decision knows nothing: when it is idle, and how it stands where the key lives until then. Nothing for what is none
-- of ours.
local function unknownState(raw)
  for _, kind in ipairs(STRINGS) do
    local algorithm = algorithms[kind]
    local state, numbers = algorithm.decode(raw)
    if state then
      local rule = algorithm.ruleNamed(numbers, 0)
      return algorithm.resetUs(rule, state, nowUs), algorithm.encode(rule, state)
    end
  end
end

-- Sections that the decision has no part in stay while they are in use, and the key lives as long as they do. Says whether they are ours.
local function keepOthers(sections)
  local inUse = {}
  for _, name in ipairs(sections.others) do
    if not sections.isMine[name] then
      local us, raw = unknownState(sections.states[name])
      if not us then
        return false
      elseif us > 0 then
        inUse[#inUse + 1], sections.states[name] = name, raw
        sections.longestUs = math.max(sections.longestUs, us)
      end
    end
  end
  sections.others, sections.areKept = inUse, true
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
    call('ZADD', key, unpack(args))
  end
end

-- What writes a state, each with the least that it takes. Redis rolls nothing back: a user who may run some of them only would lose the state,
-- or leave it without a time to live.
local WRITES = {
  string = { { 'SET', '', 'PX', '1' } },
  hash = { { 'HSET', '', '' }, { 'PEXPIRE', '1' } },
  zset = { { 'ZADD', '0', '' }, { 'PEXPIRE', '1' } },
}
local SPARSE = { 'DEL' }

-- Redis 6.2 cannot tell.
local mayRun = redis.acl_check_cmd

local function checkRight(command, key)
  if not mayRun(command[1], key, unpack(command, 2)) then
    error({ err = "ERR The user executing the script can't run this command: " .. command[1] .. ' on the key ' .. key }, 0)
  end
end

local function checkRights(cell, key)
  if not mayRun then
    return
  end
  for _, command in ipairs(WRITES[cell.algorithm.kind]) do
    checkRight(command, key)
  end
  if cell.algorithm.sparse then
    checkRight(SPARSE, key)
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

-- Somebody else may have taken its time to live away: without one it would stay for ever.
local function isEndless(key)
  return call('PTTL', key) == -1
end

local function save(cell, key, resetUs)
  local sections = cell.sections
  if sections then
    if cell.written or cell.changed then
      -- As it stands where the key lives until it is idle, for if it is written.
      sections.states[cell.name] = cell.algorithm.encode(cell.rule, cell.state)
      sections.mine[#sections.mine + 1] = cell.name
      sections.longestUs = math.max(sections.longestUs, resetUs)
      sections.changed = sections.changed or cell.changed
    end
  elseif cell.changed then
    store(cell, key, ttlMs(resetUs))
  elseif cell.written and isEndless(key) then
    checkRights(cell, key)
    store(cell, key, ttlMs(resetUs))
  end
end

local function writeSections(key, names, sections)
  if #names > 0 then
    call('SET', key, sectionsText(names, sections.states), 'PX', ttlMs(sections.longestUs))
  else
    call('DEL', key)
  end
end

-- Those of the decision first, in its order, as the short form expects them.
local function saveSections(key, sections)
  sections.isSaved = true
  if not sections.changed and not (sections.isThere and isEndless(key)) then
    return
  end
  local names = sections.mine
  for _, name in ipairs(sections.others) do
    names[#names + 1] = name
  end
  writeSections(key, names, sections)
end

-- What is none of ours goes with the rest.
local function forgetSections(key, sections)
  writeSections(key, sections and keepOthers(sections) and sections.others or {}, sections)
end

local function say(...)
  for k = 1, select('#', ...) do
    reply[#reply + 1] = select(k, ...)
  end
end

local function sayVerdict(verdict, isReservation)
  if verdict.enteredUs > nowUs then
    say(ENTERED_LATER, verdict.enteredUs - nowUs)
  elseif verdict.outcome == 'allowed' and verdict.delayUs == 0 and not isReservation then
    say(verdict.remaining, verdict.resetUs)
    return
  end
  say(OUTCOMES[verdict.outcome], verdict.remaining, verdict.retryUs, verdict.resetUs, verdict.delayUs)
  if isReservation then
    say(verdict.ticket and wordsText(verdict.ticket) or '')
  end
end

-- A part of a decision; its key is the `place`th of the decision's. See runner.lua.
local function cellAt(at, part, op)
  local kind, place, name = string.match(ARGV[at], '^(%a+) ?(%d*) ?(.*)$')
  local algorithm = algorithms[kind]
  local cell = {
    type = kind,
    place = tonumber(place) or part,
    name = name ~= '' and name or nil,
    algorithm = algorithm,
    -- What stands behind a colon is for the short forms.
    rule = algorithm.ruleNamed(string.match(ARGV[at + 1], '^[^:]*'), tonumber(ARGV[at + 2])),
    cost = tonumber(ARGV[at + 3]),
  }
  if op == 'give' and ARGV[at + 4] ~= '' then
    cell.ticket = { numbers = ARGV[at + 4], words = wordsFrom(ARGV[at + 5]) }
  end
  return cell
end

-- What the decisions of a run have in common, whose parts begin at `partsAt`.
local function runAt(partsAt, partSize, verb, parts)
  local op, aheadUs, ofUs = string.match(verb, '^(%S+) (%S+) (%S+)$')
  local cells, verdicts = {}, {}
  for k = 1, parts do
    cells[k], verdicts[k] = cellAt(partsAt + (k - 1) * partSize, k, op), {}
  end
  return { partsAt = partsAt, op = op, aheadUs = tonumber(aheadUs), ofUs = tonumber(ofUs), cells = cells, verdicts = verdicts }
end

local function forget(cells, names)
  local shared = {}
  for k = 1, #cells do
    if cells[k].name then
      rawOf(cells[k], names[k], shared)
    else
      call('DEL', names[k])
    end
  end
  for key, sections in pairs(shared) do
    forgetSections(key, sections)
  end
  say(0)
end

-- One decision, on the keys behind the first `key`.
local function decideOne(run, key)
  local cells, verdicts = run.cells, run.verdicts
  local names, shared = {}, {}
  for k = 1, #cells do
    names[k] = KEYS[key + cells[k].place]
  end
  if run.op == 'forget' then
    forget(cells, names)
    return
  end
  for k = 1, #cells do
    load(cells[k], names[k], shared)
  end
  for k = 1, #cells do
    local sections = cells[k].sections
    if sections and not sections.areKept and not keepOthers(sections) then
      refuse(cells[k], names[k])
    end
  end
  decide(run.op, cells, nowUs, run.aheadUs, run.ofUs, verdicts)
  for k = 1, #cells do
    if not isSane(verdicts[k].resetUs) then
      refuse(cells[k], names[k])
    end
    if cells[k].changed then
      checkRights(cells[k], names[k])
    end
  end
  for k = 1, #cells do
    save(cells[k], names[k], verdicts[k].resetUs)
  end
  for k = 1, #cells do
    local sections = cells[k].sections
    if sections and not sections.isSaved then
      saveSections(names[k], sections)
    end
  end
  for k = 1, #cells do
    sayVerdict(verdicts[k], run.aheadUs >= 0)
  end
end

local run = {}

-- Decides, and returns an error if there is one.
return function(partsAt, partSize, verb, parts, key)
  if run.partsAt ~= partsAt then
    run = runAt(partsAt, partSize, verb, parts)
  end
  local isDone, failure = pcall(decideOne, run, key)
  if isDone then
    return nil
  end
  return type(failure) == 'table' and failure.err or failure
end
