-- Reads the states, has them decided, and writes what changed, with a time to live each. Many decisions may come in one call: each is made as
-- if it had come alone, in the order in which they stand.
--
-- KEYS: the keys of the decisions, decision after decision. One key holds the states of all limits that a limiter has for it.
-- ARGV: nowUs ('' for the server's time), then runs of decisions that differ in nothing but their keys, each run:
--       the verb (`op aheadUs ofUs`, -1 for none), how many decisions, how many parts and how many keys each has, then for each part:
--       its label (see codec.ts), which of the keys it has, its cost, and to `give` the ticket's numbers and the ticket's words ('' for none).
--       A plain call has nothing but a label and a cost: each key is a decision, which takes by it, on the server's time.
-- Answers { nowUs, ... } with for each part of each decision: what remains and resetUs, if it was allowed and may be acted on at once; else
-- -1 allowed, -2 limited or -3 impossible, then remaining, retryUs, resetUs, delayUs, and in a reservation the ticket's words; where it was
-- entered later than nowUs, -4 and by how much before all that. For `forget` one 0. In place of all that stands the text of an error for a
-- decision that could not be made.

local KEYS, ARGV, try, pcall, concat, type, error = KEYS, ARGV, redis.pcall, pcall, table.concat, type, error
-- How many words one more charge may need beyond those of a rule.
local MOST_GROWTH = 16
local OUTCOMES, ENTERED_LATER = { allowed = -1, limited = -2, impossible = -3 }, -4

-- A clock passed in by a test has nothing to do with the server's: a key lives a day at least from when its time to live is set.
local isPlain = #ARGV == 2
local nowUs, leastTtlMs = not isPlain and tonumber(ARGV[1]), 86400000
if not nowUs then
  local time = redis.call('TIME')
  nowUs, leastTtlMs = time[1] * 1000000 + time[2], 1
end
-- With room for the answer to a lone decision: tables that grow are made twice.
local reply, size = { nowUs, nil, nil }, 1

-- What each key holds by now, false for nothing. What MGET finds nothing in may be of another type.
local heldBy, isGuess = {}, #KEYS > 1
if isGuess then
  for first = 1, #KEYS, MOST_AT_ONCE do
    local last = min(first + MOST_AT_ONCE - 1, #KEYS)
    local values = try('MGET', unpack(KEYS, first, last))
    -- A user who may not call it reads one by one.
    for k = first, values.err and 0 or last do
      heldBy[KEYS[k]] = values[k - first + 1]
    end
  end
end

-- For each key of a decision: its name, what it holds, where in that the records are that the decision has no part in and until when those
-- are in use, and what it shall hold and until when.
local places = {}
local texts = { nil }
-- The key that is being read, for errors.
local reading

-- Fails as Redis says; a key of another type is none of ours. (Redis 7 would make a string of an error that has an `err` when it is caught.)
local function failAs(reply)
  local isOther = string.find(reply.err, 'WRONGTYPE', 1, true)
  error(isOther and { what = reply.err } or { said = reply.err }, 0)
end

local function ownRule(shape, cell)
  local kind = FORMATS[shape.format]
  if not kind then
    foreign('it holds a state of the format ' .. shape.format .. ', and this version of Sluice knows ' .. KNOWN_FORMATS)
  elseif kind ~= cell.rule.algorithm.type then
    foreign('it holds a ' .. kind .. ' state, not a ' .. cell.rule.algorithm.type .. ' state')
  end
  local own = rules[shape.label] or ruleOf(shape.label)
  if shape.plan.words > own.words then
    foreign('it holds a state of ' .. shape.plan.words .. ' words, and ' .. own.numbers .. ' has ' .. own.words)
  end
  shape.rule = own
  return own
end

-- Finds the states of the decision's limits in a key.
local function find(run, place, key)
  local held, raw = places[place], heldBy[key]
  reading = key
  if raw == nil or raw == false and isGuess and run.mustLook then
    raw = try('GET', key)
    if type(raw) == 'table' then
      failAs(raw)
    end
    heldBy[key] = raw
  end
  held.key, held.raw, held.others, held.untilUs, held.value = key, raw, 0, 0, false
  local at, last, byName = 1, raw and #raw or -1, run.byName
  while at <= last or last == 0 do
    local idleAtUs, head, wordsAt = unpackBytes('>I7Bc0', raw, at)
    local shape = shapes[head] or shapeOf(head)
    local plan = shape.plan
    local next = wordsAt + plan.size
    if next > last + 1 or idleAtUs >= NO_NUMBER then
      foreign('it holds no states of Sluice')
    end
    -- What is idle equals a state that never was.
    if idleAtUs > nowUs then
      local cell = byName[shape.name]
      if cell and cell.place == place then
        if cell.isHeld then
          foreign('it holds two states of one limit')
        end
        local own = shape.rule
        if not own or own.algorithm ~= cell.rule.algorithm then
          own = ownRule(shape, cell)
        end
        local s, words = cell.s, plan.words
        readWords(plan, raw, wordsAt, idleAtUs, s)
        for k = words, own.freshWords - 1 do
          s[k] = 0
        end
        if own.algorithm.neededWords then
          -- Without room behind its entries it moves them to the front before it adds one.
          s.length = words
          local needed = own.algorithm.neededWords(s, 0)
          -- Entries that the rule does not allow would be looked for one by one.
          if not (needed >= 0 and needed <= own.words + MOST_GROWTH) then
            foreign('it says that it has ' .. needed .. ' words')
          end
          cell.most = max(words, needed)
          for k = words, cell.most - 1 do
            s[k] = 0
          end
        end
        cell.own, cell.isHeld, cell.from, cell.to, cell.idleAtUs = own, true, at, next - 1, idleAtUs
      else
        local others = held.others + 2
        held[others - 1], held[others], held.others = at, next - 1, others
        held.untilUs = max(held.untilUs, idleAtUs)
      end
    end
    at = next
  end
end

-- Works out what a key shall hold if the decision changed it: its own records first, in its order.
local function prepare(cells, held)
  local isChanged, pieces, untilUs, raw = false, 0, held.untilUs, held.raw
  for k = 1, #cells do
    local cell = cells[k]
    if cell.changed then
      local own, idleAtUs = cell.own, nowUs + cell.verdict.resetUs
      pieces, isChanged = pieces + 1, true
      texts[pieces] = recordOf(own, cell.s, min(own.algorithm.neededWords and cell.most or own.words, own.words), idleAtUs)
      if idleAtUs > untilUs then
        untilUs = idleAtUs
      end
    elseif cell.isHeld then
      pieces = pieces + 1
      texts[pieces] = sub(raw, cell.from, cell.to)
      untilUs = max(untilUs, cell.idleAtUs)
    end
  end
  held.untilUs = untilUs
  if not isChanged then
    -- A key that lost its time to live would stay for ever.
    if raw and try('PTTL', held.key) == -1 then
      if untilUs > 0 then
        held.value = raw
      else
        try('DEL', held.key)
        heldBy[held.key] = false
      end
    end
    return
  end
  for k = 1, held.others, 2 do
    pieces = pieces + 1
    texts[pieces] = sub(raw, held[k], held[k + 1])
  end
  held.value = pieces == 1 and texts[1] or concat(texts, '', 1, pieces)
end

-- Redis rolls nothing back, so where several keys are written the rights to all of them are checked first. Redis 6.2 cannot tell.
local function checkRights(count)
  for place = 1, count do
    local held = places[place]
    if held.value and not redis.acl_check_cmd('SET', held.key, '', 'PX', '1', 'GET') then
      failAs({ err = "ERR The user executing the script can't run this command: SET on the key " .. held.key })
    end
  end
end

local function write(held)
  local key, value = held.key, held.value
  local ttlMs = max(ceil((held.untilUs - nowUs) / 1000), leastTtlMs)
  -- Answered with what it held, which Lua has already, where an OK would be a table. It refuses to write over a key of another type.
  local before = try('SET', key, value, 'PX', ttlMs, 'GET')
  if type(before) == 'table' then
    failAs(before)
  end
  heldBy[key] = value
end

local function sayVerdict(cell, isReservation)
  local verdict = cell.verdict
  local enteredUs, outcome = verdict.enteredUs, verdict.outcome
  if enteredUs > nowUs then
    reply[size + 1], reply[size + 2] = ENTERED_LATER, enteredUs - nowUs
    size = size + 2
  elseif outcome == 'allowed' and verdict.delayUs == 0 and not isReservation then
    reply[size + 1], reply[size + 2] = verdict.remaining, verdict.resetUs
    size = size + 2
    return
  end
  reply[size + 1], reply[size + 2] = OUTCOMES[outcome], verdict.remaining
  reply[size + 3] = outcome == 'impossible' and 0 or verdict.retryUs
  reply[size + 4], reply[size + 5] = verdict.resetUs, verdict.delayUs
  size = size + 5
  if isReservation then
    size = size + 1
    reply[size] = verdict.ticket and join(verdict.ticket.words, ' ') or ''
  end
end

-- Drops the records of the decision's limits, and with them whatever is none of ours.
local function forget(run, first)
  for place = 1, run.keys do
    local key, held = KEYS[first + place], places[place]
    local isFound, failure = pcall(find, run, place, key)
    if not isFound and type(failure) == 'table' and failure.said then
      error(failure, 0)
    end
    local pieces = 0
    for k = 1, isFound and held.others or 0, 2 do
      pieces = pieces + 1
      texts[pieces] = sub(held.raw, held[k], held[k + 1])
    end
    if pieces > 0 then
      held.value = concat(texts, '', 1, pieces)
      write(held)
    else
      local deleted = try('DEL', key)
      if type(deleted) == 'table' then
        failAs(deleted)
      end
      heldBy[key] = false
    end
  end
  size = size + 1
  reply[size] = 0
end

-- One decision, on the keys behind the first so many.
local function decideOne(run, first)
  local cells, keys, writes = run.cells, run.keys, 0
  for k = 0, cells.length - 1 do
    local cell = cells[k]
    cell.isHeld, cell.own, cell.most, cell.s.length = false, cell.rule, cell.rule.mostOfFresh, 0
  end
  if run.op == 'forget' then
    return forget(run, first)
  end
  for place = 1, keys do
    find(run, place, KEYS[first + place])
  end
  decide(run.op, cells, nowUs, run.aheadUs, run.ofUs, true)
  for place = 1, keys do
    prepare(run.cellsOf[place], places[place])
    writes = writes + (places[place].value and 1 or 0)
  end
  if writes > 1 and redis.acl_check_cmd then
    checkRights(keys)
  end
  for place = 1, writes > 0 and keys or 0 do
    if places[place].value then
      write(places[place])
    end
  end
  for k = 0, cells.length - 1 do
    sayVerdict(cells[k], run.aheadUs >= 0)
  end
end

local function wordsIn(text)
  local words, count = {}, 0
  for word in string.gmatch(text, '%S+') do
    words[count], count = tonumber(word), count + 1
  end
  return words
end

-- A run's part: see ARGV.
local function addPart(run, label, place, cost)
  local rule, cells = rules[label] or ruleOf(label, true), run.cells
  -- With all that is put into them later: tables that grow are made anew.
  local verdict = { outcome = false, remaining = 0, retryUs = 0, resetUs = 0, delayUs = 0, atUs = 0, enteredUs = 0, ticket = nil }
  local cell = {
    rule = rule,
    own = rule,
    cost = cost,
    place = place,
    s = { [0] = 0, 0, 0, 0, length = 0 },
    i = 0,
    verdict = verdict,
    isHeld = false,
    changed = false,
    from = 0,
    to = 0,
    idleAtUs = 0,
    most = rule.words,
  }
  cells[cells.length] = cell
  cells.length = cells.length + 1
  run.byName[sub(label, 3, 2 + byte(label, 2))] = cell
  local beside = run.cellsOf[place] or {}
  beside[#beside + 1] = cell
  run.cellsOf[place] = beside
  places[place] = places[place] or { key = '', raw = false, others = 0, untilUs = 0, value = false }
  -- One that takes sees when it writes whether the key is of another type.
  run.mustLook = run.mustLook or run.op ~= 'take' or cost == 0
  if rule.algorithm.neededWords and not rule.mostOfFresh then
    rule.mostOfFresh = rule.algorithm.neededWords({ [0] = 0, 0, 0, 0 }, 0)
  end
  return cell
end

local function newRun(op, aheadUs, ofUs, keys)
  return {
    op = op,
    aheadUs = aheadUs,
    ofUs = ofUs,
    keys = keys,
    mustLook = keys > 1,
    cells = { length = 0 },
    byName = {},
    cellsOf = {},
  }
end

-- What the script itself stumbles over is a state that none of ours wrote.
local function textOf(failure)
  local isTable = type(failure) == 'table'
  if isTable and failure.said then
    return failure.said
  end
  return 'SLUICE the key ' .. reading .. ' does not hold a state that this version of Sluice wrote: ' .. (isTable and failure.what or failure)
end

local at, key, made, firstError, areAlike = isPlain and 1 or 2, 0, 0, nil, true
while at <= #ARGV do
  local run, count
  if isPlain then
    run, count = newRun('take', -1, -1, 1), #KEYS
    addPart(run, ARGV[1], 1, tonumber(ARGV[2]))
    at = 3
  else
    local op, aheadUs, ofUs = string.match(ARGV[at], '^(%S+) (%S+) (%S+)$')
    run, count = newRun(op, tonumber(aheadUs), tonumber(ofUs), tonumber(ARGV[at + 3])), tonumber(ARGV[at + 1])
    local parts = tonumber(ARGV[at + 2])
    at = at + 4
    for _ = 1, parts do
      local cell = addPart(run, ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]))
      at = at + 3
      if op == 'give' then
        cell.ticket = ARGV[at] ~= '' and { numbers = ARGV[at], words = wordsIn(ARGV[at + 1]) } or nil
        at = at + 2
      end
    end
  end
  for _ = 1, count do
    local isMade, failure = pcall(decideOne, run, key)
    if isMade then
      made = made + 1
    else
      size = size + 1
      reply[size] = textOf(failure)
      firstError = firstError or reply[size]
      areAlike = areAlike and reply[size] == firstError
    end
    key = key + run.keys
  end
end

-- Where nothing could be decided for one reason, the client should see the error as one: some act on what it says.
if made == 0 and areAlike then
  return redis.error_reply(firstError)
end
return reply
