-- Reads the states, has them decided, and writes what changed, with a time to live each. Many decisions may come in one call: each is made as
-- if it had come alone, in the order in which they stand.
--
-- KEYS: the keys of the decisions, decision after decision. One key holds the states of all limits that a limiter has for it.
-- ARGV: nowUs ('' for the server's time), then runs of decisions that differ in nothing but their keys, each run:
--       the verb (`op aheadUs ofUs`, -1 for none), how many decisions, how many parts and how many keys each has, then for each part:
--       its label (see codec.ts), which of the keys it has, its cost, and to `give`, `settle`, `renew` and `line` the ticket's numbers and the ticket's words ('' for none).
--       A plain call has nothing but a label and a cost: each key is a decision, which takes by it, on the server's time.
-- Answers { nowUs, ... } with for each part of each decision: what remains and resetUs, if it was allowed and may be acted on at once; else
-- -1 allowed, -2 limited or -3 impossible, then remaining, retryUs, resetUs, delayUs, and in a reservation the ticket's words, to `give`,
-- `settle`, `renew` and `line` what decide.ts says was given; where it was entered later than nowUs, -4 and by how much before all that. For `forget` one 0. In place of all that stands the text of an error for a
-- decision that could not be made.
--
-- Every decision goes one way: find the states, decide, write (`decideEach`). Takes by one limit whose key holds nothing but a state by the same numbers
-- are nearly all there is, so they have a short head before that (`takeEach`), which leaves all others to it. What decides is generated from decide.ts:
-- a take by one limit (`takes`), by several (`takeAll`), and everything (`decide`).
--
-- Redis makes every function of a script anew at each call. So what few calls need stands in functions of its own, which make it when it is needed:
-- the arithmetic of each algorithm, what large states need (`pages`), and everything but takes by one limit (`others`). For the same reason it uses few
-- variables of the script: each costs a function that uses it, whenever that is made.

local try, keys = redis.pcall, KEYS
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
-- Where the keys of the decision begin that is being made, and the key that is being read.
local current, reading = 1, 1

-- What the keys hold by their place, false for nothing (MGET finds nothing in a key of another type either), and what this call has found out or
-- written since, by their name.
local values, heldBy = { nil }, { one = nil }
-- Whether states may be large: then keys are not read as a whole, but each when it is decided on.
local isLarge, hasWritten = false, false

local function readAll()
  if #keys == 1 then
    local value = try('GET', keys[1])
    if type(value) ~= 'table' then
      values[1] = value
    end
    return
  end
  for first = 1, #keys, MOST_AT_ONCE do
    local last = math.min(first + MOST_AT_ONCE - 1, #keys)
    local found = try('MGET', unpack(keys, first, last))
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

-- What is made when it is first needed.
local others, pages

-- The milliseconds until a time, rounded up, as text: Redis takes longer to write down a number of Lua. Many keys may have the same.
local knownMs, knownTtl = 0, '0'
local function ttlOf(untilUs)
  local ttlMs = (untilUs - nowUs) / 1000
  ttlMs = ttlMs + -ttlMs % 1
  ttlMs = ttlMs > leastTtlMs and ttlMs or leastTtlMs
  if ttlMs ~= knownMs then
    knownMs, knownTtl = ttlMs, ttlMs < 2147483648 and string.format('%d', ttlMs) or ttlMs
  end
  return knownTtl
end

-- Sets a key and its time to live.
local function write(key, value, untilUs)
  -- Answered with what it held, which Lua has already, where an OK would be a table. It refuses to write over a key of another type.
  local before = try('SET', key, value, 'PX', ttlOf(untilUs), 'GET')
  if before and before.err then
    others().failAs(before)
  end
  heldBy[key], hasWritten = not isLarge and value or nil, true
end

-- The answer of one limit, in full.
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

-- The bytes from one place to another, which are all there.
local function bytesOf(held, from, to)
  return to <= #held.raw and string.sub(held.raw, from, to) or pages().rangeOf(held.key, from, to)
end

-- Makes the functions for large states.
function pages()
  --[[PAGES]]
  local made = { open = open, rangeOf = rangeOf, largeState = largeState, recordFor = recordFor, wordsToWrite = wordsToWrite, piecesInPlace = piecesInPlace, writeInPlace = writeInPlace, grown = grown, store = store }
  function pages()
    return made
  end
  return made
end

-- Takes by one limit. The words of a state are four variables, or a table where there may be more.
local function takeEach(run, first, last)
  local label, cost, take, isShort, words, neededWords, small = run.label, run.cost, run.take, run.isShort, run.words, run.neededWords, run.small
  local large = (isLarge or neededWords) and pages()
  local held = large and { key = '', raw = false, size = 0 }
  local a, b, c, d, s = 0, 0, 0, 0, small
  for k = first, last do
    local key, raw, total = keys[k], nil, nil
    current = k
    if isLarge then
      raw = large.open(held, key)
      total = held.size
    else
      raw = heldBy[key]
      if raw == nil then
        raw = values[k]
      end
      total = raw and #raw
    end
    local isUsual, isHeld, before = raw == false, false, 0
    if raw then
      local idleAtUs, head, at = unpackBytes('>I7Bc0', raw, 1)
      local shape = shapes[head] or shapeOf(head, label)
      local form = shape[FORM]
      isUsual = shape[LABEL] == label and at + shape[SIZE] == total + 1 and shape[WORDS] <= words and idleAtUs < NO_NUMBER
      isHeld = isUsual and idleAtUs > nowUs
      before = isHeld and shape[WORDS] or 0
      if isHeld and not (form and total == #raw) then
        isUsual = isLarge and not form
        if isUsual then
          s = large.largeState(held, shape, head, at, run.known)
          run.known = s
        end
      elseif isHeld and isShort then
        a, b, c, d = leadOf(shape, idleAtUs, unpackBytes(form, raw, at))
      elseif isHeld then
        s = readWords(shape, raw, at, idleAtUs, small, run.freshWords)
      end
    end
    if isUsual then
      local changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs
      if isShort then
        changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, a, b, c, d = take(a, b, c, d, isHeld, cost, nowUs)
      else
        s = isHeld and s or small
        if neededWords then
          run.s = s
          large.grown(run, before)
        end
        changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs = take(s, isHeld, cost, nowUs)
      end
      local untilUs = nowUs + resetUs
      if changed and large and not isShort then
        run.s = s
        large.store(key, run, untilUs)
      elseif changed then
        if not isShort then
          a, b, c, d = s[1], s[2], s[3], s[4]
        end
        write(key, recordOf(label, run, a, b, c, d, s, words, untilUs), untilUs)
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
      run.other = run.other or others().runOf(label, cost)
      others().decideEach(run.other, k, k)
    end
  end
end

-- Takes by one limit, each of one key. A cost of nothing has to look at the key: `decideEach` does. The run is the cell too, and what is known of its rule.
local function takesBy(label, cost)
  local take, words, isShort, neededWords = takes[string.byte(label)](figuresOf(label))
  local s = { 0, 0, 0, 0 }
  local run = {
    keys = 1,
    count = 0,
    each = takeEach,
    label = label,
    cost = cost,
    take = take,
    isShort = isShort,
    words = words,
    freshWords = neededWords and HEAD_WORDS or words,
    neededWords = neededWords,
    forms = { one = nil },
    heads = { one = nil },
    s = s,
    small = s,
    own = false,
    most = words,
  }
  run.own, isLarge = run, isLarge or words > MOST_TAGGED
  return run
end

-- Makes the functions for everything that few decisions need.
function others()
  local ARGV, type, byte, sub = ARGV, type, string.byte, string.sub
  --[[PHASES]]

  -- Makes what decides anything, with the rules that it needs: takes on states under the same numbers do not.
  local library
  function library()
    --[[LIBRARY]]
    local made = { decide = decide, join = join, ruleBy = function(label, isKnown) return rules[label] or ruleOf(label, isKnown) end, formats = FORMATS, known = KNOWN_FORMATS }
    function library()
      return made
    end
    return made
  end

  -- For each key of a decision: its name, what it holds, where in that the records are that the decision has no part in and until when those
  -- are in use, and what it shall hold and until when.
  local places = { nil }
  local function newPlace()
    return { key = '', raw = false, size = 0, others = 0, untilUs = 0, value = false, pieces = false }
  end

  -- Fails as Redis says; a key of another type is none of ours. (Redis 7 would make a string of an error that has an `err` when it is caught.)
  local function failAs(reply)
    local isOther = string.find(reply.err, 'WRONGTYPE', 1, true)
    error(isOther and { what = reply.err } or { said = reply.err }, 0)
  end

  -- What a key holds that is not known yet.
  local function look(key)
    local raw = try('GET', key)
    if type(raw) == 'table' then
      failAs(raw)
    end
    heldBy[key] = raw
    return raw
  end

  -- The numbers that a state of a cell is written by: the cell's, or others.
  local function numbersOf(shape, cell)
    local label, numbers = shape[LABEL], cell.numbers
    if label ~= numbers.label then
      local format, wanted = byte(label), library().formats[byte(numbers.label)]
      local kind = library().formats[format]
      if not kind then
        foreign('it holds a state of the format ' .. format .. ', and this version of Sluice knows ' .. library().known)
      elseif kind ~= wanted then
        foreign('it holds a ' .. kind .. ' state, not a ' .. wanted .. ' state')
      end
      numbers = library().ruleBy(label)
    end
    if shape[WORDS] > numbers.words then
      foreign('it holds a state of ' .. shape[WORDS] .. ' words, and ' .. library().ruleBy(label).numbers .. ' has ' .. numbers.words)
    end
    return numbers
  end

  -- The cell of a run that records with a shape are about, or false. It is noted in the shape, with the numbers that they are written by.
  local function cellOf(run, shape, head)
    local cell = run.byName[sub(head, 3, 2 + byte(head, 2))] or false
    shape[CELL], shape[OWN] = cell, cell and numbersOf(shape, cell)
    shape[RUN] = run
    return cell
  end

  -- What a key that has lost its time to live shall hold: what it holds, or nothing.
  local function kept(held)
    if held.untilUs > 0 then
      return held.pieces and true or held.raw
    end
    try('DEL', held.key)
    heldBy[held.key] = false
    return false
  end

  local function decideRun(run)
    for k = 0, run.cells.length - 1 do
      local cell = run.cells[k]
      local label = cell.numbers.label
      cell.rule = library().ruleBy(label, true)
      if cell.own == cell.numbers then
        cell.own = cell.rule
      end
      -- A large state may be written under numbers that have more words.
      local length = cell.s.length
      if length and length <= cell.rule.words then
        cell.s.length = cell.rule.words + 1
      end
    end
    library().decide(run.op, run.cells, nowUs, run.aheadUs, run.ofUs, true)
  end

  -- Redis rolls nothing back, so where several keys are written the rights to all of them are checked first. Redis 6.2 cannot tell.
  local function checkRights(count)
    for place = 1, redis.acl_check_cmd and count or 0 do
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

  -- The answer of one limit. In a reservation it is always in full, with its ticket.
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
      reply[size] = verdict.ticket and library().join(verdict.ticket.words, ' ') or ''
    elseif isGiven then
      size = size + 1
      reply[size] = verdict.given
    end
  end

  -- Finds the states of a run's cells in a key. Tells whether all that it found are written by the numbers of their cells.
  local function find(run, place, k)
    local key, held, isOwn, raw, last = keys[k], places[place], true, nil, nil
    held.key, held.others, held.untilUs, held.pieces, reading = key, 0, 0, false, k
    if isLarge then
      raw = pages().open(held, key)
      last = raw and held.size or -1
    else
      raw = heldBy[key]
      if raw == nil then
        raw = values[k]
      end
      if not raw and (raw == nil or run.mustLook and #keys > 1) then
        raw = look(key)
      end
      last = raw and #raw or -1
      held.raw, held.size = raw, last
    end
    local at = 1
    while at <= last or last == 0 do
      local text, from = raw, at
      if isLarge and at + MOST_HEAD > #raw and #raw < last then
        text, from = bytesOf(held, at, math.min(at + MOST_HEAD, last)), 1
      end
      local idleAtUs, head, wordsAt = unpackBytes('>I7Bc0', text, from)
      wordsAt = wordsAt + at - from
      local shape = shapes[head] or shapeOf(head, run.label)
      local next = wordsAt + shape[SIZE]
      if next > last + 1 or idleAtUs >= NO_NUMBER then
        foreign('it holds no states of Sluice')
      end
      -- What is idle equals a state that never was.
      if idleAtUs > nowUs then
        local cell = shape[CELL]
        if shape[RUN] ~= run then
          cell = cellOf(run, shape, head)
        end
        if cell and cell.place == place then
          local own, s = shape[OWN], nil
          if cell.isHeld then
            foreign('it holds two states of one limit')
          elseif shape.isLarge then
            s = pages().largeState(held, shape, head, wordsAt, cell.large)
            cell.large = s
          else
            text, from = raw, wordsAt
            if next - 1 > #raw then
              text, from = bytesOf(held, wordsAt, next - 1), 1
            end
            s = readWords(shape, text, from, idleAtUs, cell.small, own.freshWords)
          end
          cell.s, cell.own, cell.isHeld, cell.from, cell.to, cell.idleAtUs = s, own, true, at, next - 1, idleAtUs
          if own.neededWords then
            pages().grown(cell, shape[WORDS])
          end
          isOwn = isOwn and own == cell.numbers
        else
          local count = held.others + 2
          held[count - 1], held[count], held.others = at, next - 1, count
          held.untilUs = idleAtUs > held.untilUs and idleAtUs or held.untilUs
        end
      end
      at = next
    end
    return isOwn
  end

  -- Works out what a key shall hold if the decision changed it: the records of the cells first, in their order.
  local function prepare(cells, place, texts)
    local held, count, isChanged = places[place], 0, false
    local untilUs, raw = held.untilUs, held.raw
    if raw and held.size > #raw then
      held.pieces = pages().piecesInPlace(cells, place)
    end
    for k = 0, cells.length - 1 do
      local cell = cells[k]
      if cell.place == place and (cell.changed or cell.isHeld) then
        local idleAtUs = cell.idleAtUs
        count = count + 1
        if cell.changed then
          local own, s = cell.own, cell.s
          idleAtUs, isChanged = nowUs + cell.verdict.resetUs, true
          if not isLarge and own == cell.numbers and not own.neededWords then
            texts[count] = recordOf(own.label, own, s[1], s[2], s[3], s[4], s, own.words, idleAtUs)
          else
            texts[count] = not held.pieces and pages().recordFor(cell, pages().wordsToWrite(cell), idleAtUs)
          end
        else
          texts[count] = not held.pieces and bytesOf(held, cell.from, cell.to)
        end
        untilUs = idleAtUs > untilUs and idleAtUs or untilUs
      end
    end
    held.untilUs = untilUs
    if not isChanged then
      -- A key that lost its time to live would stay for ever.
      held.value = raw and try('PTTL', held.key) == -1 and kept(held)
    elseif held.pieces then
      held.value = true
    else
      for k = 1, held.others, 2 do
        count = count + 1
        texts[count] = bytesOf(held, held[k], held[k + 1])
      end
      held.value = count == 1 and texts[1] or table.concat(texts, '', 1, count)
    end
    return held.value
  end

  -- The decisions of a run whose keys stand from one place to another.
  local function decideEach(run, first, last)
    local cells, perDecision, texts = run.cells, run.keys, { nil }
    for key = first, last, perDecision do
      local isTake, writes = run.isTake, 0
      current = key
      for k = 0, cells.length - 1 do
        cells[k].isHeld = false
      end
      for place = 1, perDecision do
        isTake = find(run, place, key + place - 1) and isTake
      end
      for k = 0, cells.length - 1 do
        local cell = cells[k]
        if not cell.isHeld then
          cell.s, cell.own = cell.small, cell.numbers
          if cell.own.neededWords then
            pages().grown(cell, 0)
          end
        end
      end
      if isTake then
        takeAll(cells, nowUs)
      else
        decideRun(run)
      end
      for place = 1, perDecision do
        writes = writes + (prepare(cells, place, texts) and 1 or 0)
      end
      if writes > 1 then
        checkRights(perDecision)
      end
      for place = 1, writes > 0 and perDecision or 0 do
        local held = places[place]
        if held.value and held.pieces then
          pages().writeInPlace(held.key, held.pieces, held.pieces.size, held.untilUs)
        elseif held.value then
          write(held.key, held.value, held.untilUs)
        end
      end
      for k = 0, cells.length - 1 do
        say(cells[k].verdict, run.aheadUs >= 0, run.isGiven)
      end
    end
  end

  -- Drops the records of the decision's limits, and with them whatever is none of ours.
  local function forgetEach(run, first, last)
    for at = first, last do
      local place = (at - first) % run.keys + 1
      current = at - place + 1
      for k = 0, run.cells.length - 1 do
        run.cells[k].isHeld = false
      end
      local isFound, failure = pcall(find, run, place, at)
      if not isFound and type(failure) == 'table' and failure.said then
        error(failure, 0)
      end
      local held, texts = places[place], {}
      for k = 1, isFound and held.others or 0, 2 do
        texts[#texts + 1] = bytesOf(held, held[k], held[k + 1])
      end
      if #texts > 0 then
        write(held.key, table.concat(texts), held.untilUs)
      else
        local deleted = try('DEL', held.key)
        if type(deleted) == 'table' then
          failAs(deleted)
        end
        heldBy[held.key] = false
      end
      if place == run.keys then
        size = size + 1
        reply[size] = 0
      end
    end
  end

  -- One limit's share in the decisions of a run: a cell of decide.ts, and `numbers`: what is known of the states that are written by its rule.
  local function addCell(run, label, place, cost)
    local cells = run.cells
    local agree, finish, words, freshWords, neededWords = phases[byte(label)](figuresOf(label))
    local numbers = { label = label, words = words, freshWords = freshWords, neededWords = neededWords, forms = {}, heads = {} }
    local s = { 0, 0, 0, 0 }
    -- With all that is put into them later: tables that grow are made anew.
    local cell = {
      numbers = numbers,
      own = numbers,
      agree = agree,
      finish = finish,
      cost = cost,
      place = place,
      s = s,
      small = s,
      large = false,
      i = 1,
      verdict = { outcome = false, remaining = 0, retryUs = 0, resetUs = 0, delayUs = 0, atUs = 0, enteredUs = 0, ticket = nil, given = 0 },
      isHeld = false,
      changed = false,
      from = 0,
      to = 0,
      idleAtUs = 0,
      most = words,
    }
    cells[cells.length] = cell
    cells.length = cells.length + 1
    run.byName[sub(label, 3, 2 + byte(label, 2))] = cell
    isLarge = isLarge or words > MOST_TAGGED
    places[place] = places[place] or newPlace()
    -- One that takes sees when it writes whether the key is of another type.
    run.mustLook = run.mustLook or cost == 0
    return cell
  end

  -- Decisions that differ in nothing but their keys, so many each.
  local function newRun(op, aheadUs, ofUs, count)
    return {
      op = op,
      aheadUs = aheadUs,
      ofUs = ofUs,
      keys = count,
      mustLook = op ~= 'take' or count > 1,
      isTake = op == 'take' and aheadUs < 0,
      isGiven = op == 'give' or op == 'settle' or op == 'renew' or op == 'line',
      cells = { length = 0 },
      byName = {},
      each = false,
    }
  end

  -- Takes by one limit as any other decision.
  local function runOf(label, cost)
    local run = newRun('take', -1, -1, 1)
    addCell(run, label, 1, cost)
    run.each = decideEach
    return run
  end

  local function wordsIn(text)
    local words, count = {}, 0
    for word in string.gmatch(text, '%S+') do
      words[count], count = tonumber(word), count + 1
    end
    words.length = count
    return words
  end

  -- The run that begins at a place in ARGV, and where the next one begins.
  local function runAt(at)
    local op, aheadUs, ofUs = string.match(ARGV[at], '^(%S+) (%S+) (%S+)$')
    local count, parts, cost = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 6])
    if op == 'take' and aheadUs == '-1' and parts == 1 and cost > 0 then
      local run = takesBy(ARGV[at + 4], cost)
      run.count = count
      return run, at + 7
    end
    local run = newRun(op, tonumber(aheadUs), tonumber(ofUs), tonumber(ARGV[at + 3]))
    run.count, run.each = count, op == 'forget' and forgetEach or decideEach
    at = at + 4
    for _ = 1, parts do
      local cell = addCell(run, ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]))
      at = at + 3
      if run.isGiven then
        cell.ticket = ARGV[at] ~= '' and { numbers = ARGV[at], words = wordsIn(ARGV[at + 1]) } or nil
        at = at + 2
      end
    end
    return run, at
  end

  -- What the script itself stumbles over is a state that none of ours wrote. Where a decision has one key, `key` is that.
  local function failureText(failure, key)
    local isTable = type(failure) == 'table'
    if isTable and failure.said then
      return failure.said
    end
    return 'SLUICE the key ' .. (key or keys[reading]) .. ' does not hold a state that this version of Sluice wrote: ' .. (isTable and failure.what or failure)
  end

  local made = { failAs = failAs, decideEach = decideEach, runOf = runOf, runAt = runAt, failureText = failureText }
  function others()
    return made
  end
  return made
end

local runs = { nil }
if isPlain then
  local cost = tonumber(ARGV[2])
  runs[1] = cost > 0 and takesBy(ARGV[1], cost) or others().runOf(ARGV[1], cost)
  runs[1].count = #keys
else
  local at = 2
  while at <= #ARGV do
    runs[#runs + 1], at = others().runAt(at)
  end
end
if not isLarge then
  readAll()
end

local key, decisions, failures, firstError, areAlike = 1, 0, 0, nil, true
for k = 1, #runs do
  local run = runs[k]
  local last, isMade, failure = key + run.count * run.keys - 1, true, nil
  while key <= last do
    current = key
    isMade, failure = pcall(run.each, run, key, last)
    key = last + 1
    -- It goes on behind a decision that cannot be made.
    if not isMade then
      size, failures, key = size + 1, failures + 1, current + run.keys
      reply[size] = others().failureText(failure, run.keys == 1 and keys[current])
      firstError = firstError or reply[size]
      areAlike = areAlike and reply[size] == firstError
    end
  end
  decisions = decisions + run.count
end

-- Where nothing could be decided for one reason, the client should see the error as one: some act on what it says.
if failures == decisions and areAlike then
  return redis.error_reply(firstError)
end
return reply
