-- Reads the states, has them decided, and writes what changed, with a time to live each. Many decisions may come in one call: each is made as
-- if it had come alone, in the order in which they stand.
--
-- KEYS: the keys of the decisions, decision after decision. One key holds the states of all limits that a limiter has for it.
-- ARGV: nowUs ('' for the server's time), then runs of decisions that differ in nothing but their keys, each run:
--       the verb (`op aheadUs ofUs`, -1 for none), how many decisions, how many parts and how many keys each has, then for each part:
--       its label (see codec.ts), which of the keys it has, its cost, and to `give` and `settle` the ticket's numbers and the ticket's words ('' for none).
--       A plain call has nothing but a label and a cost: each key is a decision, which takes by it, on the server's time.
-- Answers { nowUs, ... } with for each part of each decision: what remains and resetUs, if it was allowed and may be acted on at once; else
-- -1 allowed, -2 limited or -3 impossible, then remaining, retryUs, resetUs, delayUs, and in a reservation the ticket's words, to `give` and `settle` how
-- many permits were given back; where it was
-- entered later than nowUs, -4 and by how much before all that. For `forget` one 0. In place of all that stands the text of an error for a
-- decision that could not be made.
--
-- Redis makes every function of a script anew at each call. So what few calls need stands in functions of its own, which make it when it is needed:
-- the arithmetic of each algorithm (`takes`), and everything but plain takes (`others`). For the same reason it uses few variables of the script: each costs a
-- function that uses it, whenever that is made.

local try = redis.pcall
-- How many words one more charge may need beyond those of a rule, and the longest head of a record, with what stands before it.
local MOST_GROWTH, MOST_HEAD = 16, 263
local ENTERED_LATER, ALLOWED, LIMITED, IMPOSSIBLE = -4, -1, -2, -3

-- A clock passed in by a test has nothing to do with the server's: a key lives a day at least from when its time to live is set.
local isPlain = #ARGV == 2
local nowUs, leastTtlMs = not isPlain and tonumber(ARGV[1]), 86400000
if not nowUs then
  local time = redis.call('TIME')
  nowUs, leastTtlMs = time[1] * 1000000 + time[2], 1
end
-- With room for the answer to a lone decision: tables that grow are made twice.
local reply, size = { nowUs, nil, nil }, 1
-- Where the keys of the decision begin that is being made.
local current = 1

-- What the keys hold by their place, false for nothing (MGET finds nothing in a key of another type either), and what this call has found out or
-- written since, by their name.
local values, heldBy = { nil }, { one = nil }
-- Whether states may be large: then keys are not read as a whole, but each when it is decided on.
local isLarge, hasWritten = false, false

local function readAll()
  if #KEYS == 1 then
    local value = try('GET', KEYS[1])
    if type(value) ~= 'table' then
      values[1] = value
    end
    return
  end
  for first = 1, #KEYS, MOST_AT_ONCE do
    local last = math.min(first + MOST_AT_ONCE - 1, #KEYS)
    local found = try('MGET', unpack(KEYS, first, last))
    -- A user who may not call it reads one by one.
    if first == 1 and not found.err then
      values = found
    else
      for k = first, found.err and 0 or last do
        values[k] = found[k - first + 1]
      end
    end
  end
end

-- Everything but plain takes, made when it is first needed; and how takes by one limit are made.
local others, takesBy

local function ttlMsOf(untilUs)
  local ttlMs = (untilUs - nowUs) / 1000
  ttlMs = ttlMs + -ttlMs % 1
  return ttlMs > leastTtlMs and ttlMs or leastTtlMs
end

-- Sets a key and its time to live.
local function write(key, value, untilUs)
  -- Answered with what it held, which Lua has already, where an OK would be a table. It refuses to write over a key of another type.
  local before = try('SET', key, value, 'PX', ttlMsOf(untilUs), 'GET')
  if before and before.err then
    others().failAs(before)
  end
  heldBy[key], hasWritten = not isLarge and value or nil, true
end

local function sayInFull(outcome, remaining, retryUs, resetUs, delayUs, enteredUs)
  if enteredUs > nowUs then
    reply[size + 1], reply[size + 2] = ENTERED_LATER, enteredUs - nowUs
    size = size + 2
  end
  reply[size + 1] = outcome == 'limited' and LIMITED or outcome == 'allowed' and ALLOWED or IMPOSSIBLE
  reply[size + 2], reply[size + 3] = remaining, outcome == 'impossible' and 0 or retryUs
  reply[size + 4], reply[size + 5] = resetUs, delayUs
  size = size + 5
end

-- Makes the functions for large states.
local function newPages()
  --[[PAGES]]
  return { open = open, bytesOf = bytesOf, largeState = largeState, recordFor = recordFor, addLarge = addLarge, writeInPlace = writeInPlace, LARGE = LARGE }
end

local knownPages
local function pages()
  knownPages = knownPages or newPages()
  return knownPages
end

-- Makes the functions for everything but plain takes.
function others()
  local KEYS, ARGV, type, byte, sub = KEYS, ARGV, type, string.byte, string.sub
  --[[LIBRARY]]
  local open, bytesOf, largeState, recordFor, addLarge, LARGE = pages().open, pages().bytesOf, pages().largeState, pages().recordFor, pages().addLarge, pages().LARGE
  -- For each key of a decision: its name, what it holds, where in that the records are that the decision has no part in and until when those
  -- are in use, and what it shall hold and until when.
  local places = {}
  local texts = { nil }
  -- The key that is being read, for errors.
  local reading = KEYS[1]

  -- Fails as Redis says; a key of another type is none of ours. (Redis 7 would make a string of an error that has an `err` when it is caught.)
  local function failAs(reply)
    local isOther = string.find(reply.err, 'WRONGTYPE', 1, true)
    error(isOther and { what = reply.err } or { said = reply.err }, 0)
  end

  local function ownRule(shape, cell)
    local format = byte(shape[LABEL])
    local kind = FORMATS[format]
    if not kind then
      foreign('it holds a state of the format ' .. format .. ', and this version of Sluice knows ' .. KNOWN_FORMATS)
    elseif kind ~= cell.rule.algorithm.type then
      foreign('it holds a ' .. kind .. ' state, not a ' .. cell.rule.algorithm.type .. ' state')
    end
    local own = rules[shape[LABEL]] or ruleOf(shape[LABEL])
    if shape[WORDS] > own.words then
      foreign('it holds a state of ' .. shape[WORDS] .. ' words, and ' .. own.numbers .. ' has ' .. own.words)
    end
    shape.rule = own
    return own
  end

  -- What a key holds, which has this place among all.
  local function heldAt(k, mustLook)
    local key = KEYS[k]
    local raw = heldBy[key]
    if raw == nil then
      raw = values[k]
    end
    if raw == nil or raw == false and mustLook and #KEYS > 1 then
      raw = try('GET', key)
      if type(raw) == 'table' then
        failAs(raw)
      end
      heldBy[key] = raw
    end
    return raw
  end

  -- Finds the states of the decision's limits in a key.
  local function find(run, place, k)
    local held = places[place]
    reading = KEYS[k]
    held.key, held.others, held.untilUs, held.value, held.pieces = KEYS[k], 0, 0, false, false
    if isLarge then
      open(held, KEYS[k])
    else
      held.raw = heldAt(k, run.mustLook)
      held.size = held.raw and #held.raw or 0
    end
    local raw = held.raw
    local at, last, byName = 1, raw and held.size or -1, run.byName
    while at <= last or last == 0 do
      local text, from = raw, at
      if at + MOST_HEAD > #raw and #raw < last then
        text, from = bytesOf(held, at, min(at + MOST_HEAD, last)), 1
      end
      local idleAtUs, head, wordsAt = unpackBytes('>I7Bc0', text, from)
      wordsAt = wordsAt + at - from
      local shape = shapes[head] or shapeOf(head)
      local next = wordsAt + shape[SIZE]
      if next > last + 1 or idleAtUs >= NO_NUMBER then
        foreign('it holds no states of Sluice')
      end
      -- What is idle equals a state that never was.
      if idleAtUs > nowUs then
        shape.name = shape.name or sub(head, 3, 2 + byte(head, 2))
        local cell = byName[shape.name]
        if cell and cell.place == place then
          if cell.isHeld then
            foreign('it holds two states of one limit')
          end
          local own = shape.rule
          if not own or own.algorithm ~= cell.rule.algorithm then
            own = ownRule(shape, cell)
          end
          local words = shape[WORDS]
          local s = cell.s
          if shape.isLarge then
            s = largeState(held, shape, head, wordsAt)
          else
            text, from = raw, wordsAt
            if next - 1 > #raw then
              text, from = bytesOf(held, wordsAt, next - 1), 1
            end
            s = readWords(shape, text, from, idleAtUs, s, own.freshWords)
          end
          cell.most = own.words
          if own.algorithm.neededWords then
            local needed = own.algorithm.neededWords(s, 1)
            -- Entries that the rule does not allow would be looked for one by one.
            if not (needed >= 0 and needed <= own.words + MOST_GROWTH) then
              foreign('it says that it has ' .. needed .. ' words')
            end
            cell.most = max(words, needed)
            s.length = cell.most + 1
            for k = words + 1, shape.isLarge and 0 or cell.most do
              s[k] = 0
            end
          end
          cell.s, cell.own, cell.isHeld, cell.from, cell.to, cell.idleAtUs = s, own, true, at, next - 1, idleAtUs
        else
          local others = held.others + 2
          held[others - 1], held[others], held.others = at, next - 1, others
          held.untilUs = max(held.untilUs, idleAtUs)
        end
      end
      at = next
    end
  end

  -- How many words the state of a cell takes from now on. They are all there.
  local function wordsToWrite(cell)
    local own, s = cell.own, cell.s
    local needed = own.algorithm.neededWords
    local words = needed and min(needed(s, 1), own.words) or own.words
    for k = cell.most + 1, getmetatable(s) == LARGE and 0 or words do
      s[k] = s[k] or 0
    end
    return words
  end

  -- What has to be written into a key, if no record changes its size: the place of each piece and its bytes. Nil if one does.
  local function piecesInPlace(cells)
    local pieces, size = {}, 0
    for k = 1, #cells do
      local cell = cells[k]
      if cell.changed and not cell.isHeld then
        return nil
      elseif cell.changed then
        local own, s, words, idleAtUs = cell.own, cell.s, wordsToWrite(cell), nowUs + cell.verdict.resetUs
        if getmetatable(s) == LARGE and s.words == words and shapes[s.head][LABEL] == own.label then
          size = addLarge(pieces, size, s, cell.from, idleAtUs)
        else
          local text = recordFor(own.label, own.written, s, words, idleAtUs)
          if #text ~= cell.to - cell.from + 1 then
            return nil
          end
          pieces[size + 1], pieces[size + 2] = cell.from, text
          size = size + 2
        end
      end
    end
    return pieces
  end

  -- Works out what a key shall hold if the decision changed it: its own records first, in its order.
  local function prepare(cells, held)
    local isChanged, pieces, untilUs, raw = false, 0, held.untilUs, held.raw
    if isLarge and raw and held.size > #raw then
      held.pieces = piecesInPlace(cells)
    end
    for k = 1, #cells do
      local cell = cells[k]
      if cell.changed then
        local idleAtUs = nowUs + cell.verdict.resetUs
        pieces, isChanged = pieces + 1, true
        texts[pieces] = not held.pieces and recordFor(cell.own.label, cell.own.written, cell.s, wordsToWrite(cell), idleAtUs)
        if idleAtUs > untilUs then
          untilUs = idleAtUs
        end
      elseif cell.isHeld then
        pieces = pieces + 1
        texts[pieces] = not held.pieces and bytesOf(held, cell.from, cell.to)
        untilUs = max(untilUs, cell.idleAtUs)
      end
    end
    held.untilUs = untilUs
    if not isChanged then
      -- A key that lost its time to live would stay for ever.
      if raw and try('PTTL', held.key) == -1 then
        if untilUs > 0 and held.pieces then
          held.value = true
        elseif untilUs > 0 then
          held.value = raw
        else
          try('DEL', held.key)
          heldBy[held.key] = false
        end
      end
      return
    end
    if held.pieces then
      held.value = true
      return
    end
    for k = 1, held.others, 2 do
      pieces = pieces + 1
      texts[pieces] = bytesOf(held, held[k], held[k + 1])
    end
    held.value = pieces == 1 and texts[1] or table.concat(texts, '', 1, pieces)
  end

  -- Redis rolls nothing back, so where several keys are written the rights to all of them are checked first. Redis 6.2 cannot tell.
  local function checkRights(count)
    for place = 1, count do
      local held = places[place]
      local mayWrite = redis.acl_check_cmd('SET', held.key, '', 'PX', '1', 'GET')
      if held.pieces then
        mayWrite = redis.acl_check_cmd('SETRANGE', held.key, '0', '') and redis.acl_check_cmd('PEXPIRE', held.key, '1')
      end
      if held.value and not mayWrite then
        failAs({ err = "ERR The user executing the script can't write the key " .. held.key })
      end
    end
  end

  -- Drops the records of the decision's limits, and with them whatever is none of ours.
  local function forget(run, first)
    for place = 1, run.keys do
      local key, held = KEYS[first + place - 1], places[place]
      local isFound, failure = pcall(find, run, place, first + place - 1)
      if not isFound and type(failure) == 'table' and failure.said then
        error(failure, 0)
      end
      local pieces = 0
      for k = 1, isFound and held.others or 0, 2 do
        pieces = pieces + 1
        texts[pieces] = bytesOf(held, held[k], held[k + 1])
      end
      if pieces > 0 then
        write(key, table.concat(texts, '', 1, pieces), held.untilUs)
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

  local function say(verdict, isReservation, isGiven)
    local outcome, delayUs, enteredUs = verdict.outcome, verdict.delayUs, verdict.enteredUs
    if outcome == 'allowed' and delayUs == 0 and enteredUs == nowUs and not isReservation and not isGiven then
      reply[size + 1], reply[size + 2] = verdict.remaining, verdict.resetUs
      size = size + 2
      return
    end
    sayInFull(outcome, verdict.remaining, verdict.retryUs, verdict.resetUs, delayUs, enteredUs)
    if isReservation then
      size = size + 1
      reply[size] = verdict.ticket and join(verdict.ticket.words, ' ') or ''
    elseif isGiven then
      size = size + 1
      reply[size] = verdict.given
    end
  end

  -- One decision, the keys of which begin at a place.
  local function decideOne(run, first)
    local cells, keys, writes = run.cells, run.keys, 0
    for k = 0, cells.length - 1 do
      local cell = cells[k]
      cell.isHeld, cell.own, cell.most = false, cell.rule, cell.rule.mostOfFresh
      if getmetatable(cell.s) then
        cell.s = {}
      end
      cell.s.length = cell.most + 1
      for j = cell.rule.freshWords + 1, cell.most do
        cell.s[j] = 0
      end
    end
    if run.op == 'forget' then
      return forget(run, first)
    end
    for place = 1, keys do
      find(run, place, first + place - 1)
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
      local held = places[place]
      if held.value and held.pieces then
        pages().writeInPlace(held.key, held.pieces, #held.pieces, held.untilUs)
      elseif held.value then
        write(held.key, held.value, held.untilUs)
      end
    end
    for k = 0, cells.length - 1 do
      say(cells[k].verdict, run.aheadUs >= 0, run.isGiven)
    end
  end

  local function decideEach(run, first, last)
    for k = first, last, run.keys do
      current = k
      decideOne(run, k)
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
    local cell = {
      rule = rule,
      own = rule,
      cost = cost,
      place = place,
      s = { 0, 0, 0, 0, length = 0 },
      i = 1,
      verdict = { outcome = false, remaining = 0, retryUs = 0, resetUs = 0, delayUs = 0, atUs = 0, enteredUs = 0, ticket = nil, given = 0 },
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
    places[place] = places[place] or { key = '', raw = false, size = 0, others = 0, untilUs = 0, value = false, pieces = false }
    -- One that takes sees when it writes whether the key is of another type.
    run.mustLook = run.mustLook or run.op ~= 'take' or cost == 0
    rule.mostOfFresh = rule.mostOfFresh or rule.words
    if rule.algorithm.neededWords then
      local fresh = {}
      clearWords(fresh, 1, rule.freshWords)
      rule.mostOfFresh = rule.algorithm.neededWords(fresh, 1)
    end
    return cell
  end

  local function newRun(op, aheadUs, ofUs, keys)
    return {
      op = op,
      isGiven = op == 'give' or op == 'settle',
      aheadUs = aheadUs,
      ofUs = ofUs,
      keys = keys,
      mustLook = keys > 1,
      cells = { length = 0 },
      byName = {},
      cellsOf = {},
    }
  end

  -- The run that begins at a place in ARGV: how its decisions are made, the run, how many it has, and where the next one begins.
  local function runAt(at)
    local op, aheadUs, ofUs = string.match(ARGV[at], '^(%S+) (%S+) (%S+)$')
    local count, parts, keys = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    at = at + 4
    if op == 'take' and aheadUs == '-1' and parts == 1 then
      local decideEach, run = takesBy(ARGV[at], tonumber(ARGV[at + 2]))
      return decideEach, run, count, at + 3
    end
    local run = newRun(op, tonumber(aheadUs), tonumber(ofUs), keys)
    for _ = 1, parts do
      local cell = addPart(run, ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]))
      at = at + 3
      if run.isGiven then
        cell.ticket = ARGV[at] ~= '' and { numbers = ARGV[at], words = wordsIn(ARGV[at + 1]) } or nil
        at = at + 2
      end
    end
    return decideEach, run, count, at
  end

  -- What the script itself stumbles over is a state that none of ours wrote. Where a decision has one key, `key` is that.
  local function textOf(failure, key)
    local isTable = type(failure) == 'table'
    if isTable and failure.said then
      return failure.said
    end
    return 'SLUICE the key ' .. (key or reading) .. ' does not hold a state that this version of Sluice wrote: ' .. (isTable and failure.what or failure)
  end

  -- The run of takes by one limit.
  local function runOf(label, cost)
    local run = newRun('take', -1, -1, 1)
    addPart(run, label, 1, cost)
    return run
  end

  -- Whether a label among the arguments names a rule of large states. Of all arguments only labels begin with such signs.
  local function hasLarge()
    for k = 1, #ARGV do
      local format = byte(ARGV[k])
      if format and format < 32 and (rules[ARGV[k]] or ruleOf(ARGV[k], true)).words > MOST_TAGGED then
        return true
      end
    end
    return false
  end

  local made = { hasLarge = hasLarge, decideEach = decideEach, decideOne = decideOne, runAt = runAt, runOf = runOf, textOf = textOf, failAs = failAs }
  function others()
    return made
  end
  return made
end

-- Plain takes, each by one limit. The words of a state are four variables, or a table where there may be more.
local function takeEach(run, first, last)
  local label, cost, take, words, isShort, keys = run.label, run.cost, run.take, run.words, run.isShort, KEYS
  local a, b, c, d, s = 0, 0, 0, 0, isShort or { 0, 0, 0, 0 }
  for k = first, last do
    current = k
    local key = keys[k]
    local raw = heldBy[key]
    if raw == nil then
      raw = values[k]
    end
    local isUsual, isHeld = raw == false, false
    if raw then
      local idleAtUs, head, at = unpackBytes('>I7Bc0', raw, 1)
      local shape = shapes[head] or shapeOf(head, label)
      isUsual = not shape.isLarge and shape[LABEL] == label and at + shape[SIZE] == #raw + 1 and shape[WORDS] <= words and idleAtUs < NO_NUMBER
      isHeld = isUsual and idleAtUs > nowUs
      if isHeld and isShort then
        a, b, c, d = leadOf(shape, idleAtUs, unpackBytes(shape[FORM], raw, at))
      elseif isHeld then
        s = readWords(shape, raw, at, idleAtUs, s, words)
      end
    end
    if isUsual then
      local changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs
      if isShort then
        changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, a, b, c, d = take(a, b, c, d, isHeld, cost, nowUs)
      else
        changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs = take(s, isHeld, cost, nowUs)
        a, b, c, d = s[1], s[2], s[3], s[4]
      end
      if changed then
        write(key, recordOf(label, run, a, b, c, d, s, words, nowUs + resetUs), nowUs + resetUs)
      elseif raw and try('PTTL', key) == -1 then
        -- A key that lost its time to live would stay for ever.
        isUsual = false
      end
      if isUsual and outcome == 'allowed' and delayUs == 0 and enteredUs == nowUs then
        reply[size + 1], reply[size + 2] = remaining, resetUs
        size = size + 2
      elseif isUsual then
        sayInFull(outcome, remaining, retryUs, resetUs, delayUs, enteredUs)
      end
    end
    if not isUsual then
      -- The same decision as any other: the key holds more than the one state, or one under other numbers.
      run.other = run.other or others().runOf(label, cost)
      others().decideOne(run.other, k)
    end
  end
end

-- Plain takes, each by one limit, whose states may be large.
local function takeEachLarge(run, first, last)
  local label, cost, take, words, neededWords = run.label, run.cost, run.take, run.words, run.neededWords
  local large, held = pages(), { key = '', raw = false, size = 0 }
  local open, largeState, pieces, known = large.open, large.largeState, {}, nil
  for k = first, last do
    current = k
    local raw, s, isHeld, isUsual, before = open(held, KEYS[k]), nil, false, true, 0
    if raw then
      local idleAtUs, head, at = unpackBytes('>I7Bc0', raw, 1)
      local shape = shapes[head] or shapeOf(head, label)
      isUsual = shape[LABEL] == label and at + shape[SIZE] == held.size + 1 and shape[WORDS] <= words and idleAtUs > nowUs and idleAtUs < NO_NUMBER
      if isUsual and shape.isLarge then
        known = largeState(held, shape, head, at, known)
        s, isHeld, before = known, true, shape[WORDS]
      elseif isUsual then
        s, isHeld, before = readWords(shape, raw, at, idleAtUs, {}, HEAD_WORDS), true, shape[WORDS]
      end
    else
      s = {}
    end
    if isUsual then
      local most = neededWords and neededWords(isHeld and s or { 0, 0, 0, 0, 0, 0, 0, 0, 0 }) or words
      -- Else it is damaged.
      isUsual = most <= words + MOST_GROWTH
      most = most > before and most or before
      s.length = most + 1
      for j = before + 1, isUsual and not s.words and most or 0 do
        s[j] = s[j] or 0
      end
    end
    if isUsual then
      local changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs = take(s, isHeld, cost, nowUs)
      if changed then
        local untilUs, needed = nowUs + resetUs, neededWords and neededWords(s) or words
        needed = needed < words and needed or words
        if s.words == needed then
          large.writeInPlace(held.key, pieces, large.addLarge(pieces, 0, s, 1, untilUs), untilUs)
        else
          for j = s.length, s.words and 0 or needed do
            s[j] = 0
          end
          write(held.key, large.recordFor(label, run, s, needed, untilUs), untilUs)
        end
      elseif raw and try('PTTL', held.key) == -1 then
        isUsual = false
      end
      if isUsual and outcome == 'allowed' and delayUs == 0 and enteredUs == nowUs then
        reply[size + 1], reply[size + 2] = remaining, resetUs
        size = size + 2
      elseif isUsual then
        sayInFull(outcome, remaining, retryUs, resetUs, delayUs, enteredUs)
      end
    end
    if not isUsual then
      run.other = run.other or others().runOf(label, cost)
      others().decideOne(run.other, k)
    end
  end
end

function takesBy(label, cost)
  local newTake = takes[string.byte(label)]
  if cost == 0 or not newTake then
    return others().decideEach, others().runOf(label, cost)
  end
  local take, words, isShort, neededWords = newTake(figuresOf(label))
  return (neededWords or words > MOST_TAGGED) and takeEachLarge or takeEach, { label = label, cost = cost, keys = 1, take = take, words = words, isShort = isShort, neededWords = neededWords, forms = { one = nil }, heads = { one = nil }, other = false }
end

local plainEach, plainRun
if isPlain then
  plainEach, plainRun = takesBy(ARGV[1], tonumber(ARGV[2]))
end
isLarge = plainEach == takeEachLarge or plainEach ~= takeEach and others().hasLarge()
if not isLarge then
  readAll()
end

local at, key, decisions, failures, firstError, areAlike = isPlain and 1 or 2, 1, 0, 0, nil, true
while at <= #ARGV do
  local decideEach, run, count
  if isPlain then
    decideEach, run, count, at = plainEach, plainRun, #KEYS, 3
  else
    decideEach, run, count, at = others().runAt(at)
  end
  local last, isMade, failure = key + count * run.keys - 1, true, nil
  while key <= last do
    current = key
    isMade, failure = pcall(decideEach, run, key, last)
    key = last + 1
    -- It goes on behind a decision that cannot be made.
    if not isMade then
      size, failures, key = size + 1, failures + 1, current + run.keys
      reply[size] = others().textOf(failure, run.keys == 1 and KEYS[current])
      firstError = firstError or reply[size]
      areAlike = areAlike and reply[size] == firstError
    end
  end
  decisions = decisions + count
end

-- Where nothing could be decided for one reason, the client should see the error as one: some act on what it says.
if failures == decisions and areAlike then
  return redis.error_reply(firstError)
end
return reply
