-- Any decisions: by several limits, on states under other numbers, by other verbs; and what failed.
-- This is the body of a function, which is called when it is needed.
--
-- Every decision goes one way: find the states, decide, write (`decideEach`). What decides is
-- generated from decide.ts: a take by several limits (`takeAll`), and everything (`decide`).

-- The verbs of short runs.
local OPS = { t = 'take', c = 'charge', s = 'settle', g = 'give', r = 'renew' }

-- What a take by several limits does with a cell of an algorithm, and that take.
local function phasesOf(format, figures)
  --[[PHASES]]
end
--[[TAKE ALL]]

-- Makes what decides anything, with the rules that it needs: takes on states under the same numbers
-- do not.
local library
function library()
  --[[LIBRARY]]
  local made = { decide = decide, ruleBy = function(label, isKnown) return rules[label] or ruleOf(label, isKnown) end, formats = FORMATS, known = KNOWN_FORMATS }
  function library()
    return made
  end
  return made
end

-- For each key of a decision: its name, what it holds, where in that the records are that the
-- decision has no part in and until when it lives for those, and what it shall hold and until when.
local places = { nil }
local function newPlace()
  return { key = '', raw = false, size = 0, others = 0, livesUntilUs = 0, value = false, pieces = false }
end

-- The numbers that a state of a cell is written by: the cell's, or others.
local function numbersOf(shape, cell)
  local label, numbers = shape[const.LABEL], cell.numbers
  if label ~= numbers.label then
    local format, wanted = byte(label), library().formats[byte(numbers.label)]
    local kind = library().formats[format]
    if not kind then
      foreign('it holds a state of the format ' .. format .. ', and this version of Sluice knows ' .. library().known)
    elseif kind ~= wanted then
      foreign('it holds a ' .. kind .. ' state, not a ' .. wanted .. ' state')
    end
    numbers = library().ruleBy(label)
    numbers.stepUs = stepOf(numbers.windowUs)
  end
  -- A log keeps its entries under a smaller limit.
  if shape[const.WORDS] > (numbers.neededWords and const.MAX_WORDS or numbers.words) then
    foreign('it holds a state of ' .. shape[const.WORDS] .. ' words, and ' .. library().ruleBy(label).numbers .. ' has ' .. numbers.words)
  end
  return numbers
end

-- The cell of a run that records with a shape are about, or false. It is noted in the shape, with
-- the numbers that they are written by.
local function cellOf(run, shape, head)
  local cell = run.byName[sub(head, 3, 2 + byte(head, 2))] or false
  shape[const.CELL], shape[const.OWN] = cell, cell and numbersOf(shape, cell)
  shape[const.RUN] = run
  return cell
end

-- What a key that has lost its time to live shall hold: what it holds, or nothing.
local function kept(held)
  if held.livesUntilUs > 0 then
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
    cell.rule.stepUs = cell.numbers.stepUs
    if cell.left and run.op == 'settle' and cell.rule.algorithm.bookable then
      cell.ticket, cell.left.numbers = cell.left, cell.rule.numbers
    end
    if cell.own == cell.numbers then
      cell.own = cell.rule
    end
    -- A large state may be written under numbers that have more words. Of a small one no more are
    -- there than it needs: what stood behind them would be cleared when it is written.
    local length = cell.s.words and cell.s.length
    if length and length <= cell.rule.words then
      cell.s.length = cell.rule.words + 1
    end
  end
  library().decide(run.op, run.cells, nowUs, run.aheadUs, run.ofUs, true)
end

-- Redis rolls nothing back, so where several keys are written the rights to all of them are checked
-- first. Redis 6.2 cannot tell.
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

-- The answer of one limit.
local function say(verdict, run)
  local outcome, delayUs, enteredUs, answers, count = verdict.outcome, verdict.delayUs, verdict.enteredUs, reply, size
  if run.op == 'settle' then
    answers[count + 1] = outcome == 'allowed' and verdict.given or const.LIMITED
    size = count + 1
    return
  end
  if outcome == 'allowed' and delayUs == 0 and enteredUs == nowUs then
    answers[count + 1] = verdict.remaining
    answers[count + 2] = verdict.resetUs
    count = count + 2
  else
    count = sayInFull(answers, count, nowUs, outcome, verdict.remaining, verdict.retryUs, verdict.resetUs, delayUs, enteredUs)
  end
  if run.isGiven then
    count = count + 1
    answers[count] = verdict.given
  end
  size = count
end

-- Finds the states of a run's cells in a key. Tells whether all that it found are written by the
-- numbers of their cells.
local function find(run, place, k)
  local key, held, isOwn, raw, last = keys[k], places[place], true, nil, nil
  held.key, held.others, held.livesUntilUs, held.pieces, reading = key, 0, 0, false, k
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
    if isLarge and at + const.MOST_HEAD > #raw and #raw < last then
      text, from = bytesOf(held, at, math.min(at + const.MOST_HEAD, last)), 1
    end
    local idleAtUs, head, wordsAt = unpackBytes('>I7Bc0', text, from)
    wordsAt = wordsAt + at - from
    local shape = shapes[head] or shapeOf(head, run.label)
    local next = wordsAt + shape[const.SIZE]
    if next > last + 1 or idleAtUs >= const.NO_NUMBER then
      foreign('it holds no states of Sluice')
    end
    -- What is idle equals a state that never was.
    if idleAtUs > nowUs then
      local cell = shape[const.CELL]
      if shape[const.RUN] ~= run then
        cell = cellOf(run, shape, head)
      end
      if cell and cell.place == place then
        local own, s = shape[const.OWN], nil
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
        if not isState(own, s) then
          foreign('no limit has a state of such words')
        end
        cell.s = s
        cell.own = own
        cell.isHeld = true
        cell.from = at
        cell.to = next - 1
        cell.idleAtUs = idleAtUs
        if own.neededWords then
          pages().grown(cell, shape[const.WORDS])
        end
        if own ~= cell.numbers then
          isOwn = false
        end
      else
        local count = held.others + 2
        held[count - 1], held[count], held.others = at, next - 1, count
        -- By whichever numbers.
        local livesUntilUs = idleAtUs + const.MOST_STEP_US
        held.livesUntilUs = livesUntilUs > held.livesUntilUs and livesUntilUs or held.livesUntilUs
      end
    end
    at = next
  end
  return isOwn
end

-- Works out what a key shall hold if the decision changed it: the records of the cells first, in
-- their order.
local function prepare(cells, place, texts)
  local held, count, isChanged = places[place], 0, false
  local livesUntilUs, raw = held.livesUntilUs, held.raw
  if raw and held.size > #raw then
    held.pieces = pages().piecesInPlace(cells, place)
  end
  for k = 0, cells.length - 1 do
    local cell = cells[k]
    if cell.place == place and (cell.changed or cell.isHeld) then
      local idleAtUs, own = cell.idleAtUs, cell.own
      count = count + 1
      if cell.changed then
        local s = cell.s
        idleAtUs, isChanged = nowUs + cell.verdict.resetUs, true
        if not isLarge and own == cell.numbers and not own.neededWords then
          texts[count] = recordOf(own.label, own, s[1], s[2], s[3], s[4], s, own.words, idleAtUs)
        else
          texts[count] = not held.pieces and pages().recordFor(cell, pages().wordsToWrite(cell), idleAtUs)
        end
      else
        texts[count] = not held.pieces and bytesOf(held, cell.from, cell.to)
      end
      idleAtUs = idleAtUs + -idleAtUs % own.stepUs
      livesUntilUs = idleAtUs > livesUntilUs and idleAtUs or livesUntilUs
    end
  end
  held.livesUntilUs = livesUntilUs
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
        pages().writeInPlace(held.key, held.pieces, held.pieces.size, held.livesUntilUs)
      elseif held.value then
        write(held.key, held.value, held.livesUntilUs)
      end
    end
    for k = 0, cells.length - 1 do
      say(cells[k].verdict, run)
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
      write(held.key, table.concat(texts), held.livesUntilUs)
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

-- One limit's share in the decisions of a run: a cell of decide.ts, and `numbers`: what is known of
-- the states that are written by its rule.
local function addCell(run, label, place, cost)
  local cells = run.cells
  local format, figures = byte(label), figuresOf(label)
  local agree, finish, words, freshWords, windowUs, neededWords = phasesOf(format, figures)
  local permits = isLevel(format) and figures[1]
  local numbers = { label = label, permits = permits, isCounted = isCounted(format), words = words, freshWords = freshWords, neededWords = neededWords, stepUs = stepOf(windowUs), forms = {}, heads = {} }
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
    verdict = { outcome = false, remaining = 0, retryUs = 0, resetUs = 0, delayUs = 0, atUs = 0, enteredUs = 0, given = 0 },
    isHeld = false,
    changed = false,
    from = 0,
    to = 0,
    idleAtUs = 0,
    most = words,
    ticket = nil,
    left = false,
  }
  cells[cells.length] = cell
  cells.length = cells.length + 1
  run.byName[sub(label, 3, 2 + byte(label, 2))] = cell
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

-- Any other run that begins at a place in ARGV, and where the next one begins.
local function runAt(at)
  local op, aheadUs, ofUs = string.match(ARGV[at], '^(%S+) (%S+) (%S+)$')
  local count, parts = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
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

-- By its verb and its label: decisions by one limit as any others.
local runsBy = {}

-- `drainedUs`: to settle, when the charge would have drained.
local function oneRun(verb, label, cost, ofUs, drainedUs, tokens)
  local run = runsBy[verb .. label]
  if not run then
    run = newRun(OPS[verb], -1, -1, 1)
    local cell = addCell(run, label, 1, cost)
    run.each, run.count, runsBy[verb .. label] = decideEach, 1, run
    cell.left = { numbers = '', words = { [0] = drainedUs, ofUs, ofUs, 0, length = 4 } }
  end
  local cell = run.cells[0]
  cell.cost, run.ofUs = cost, ofUs
  local left = cell.left.words
  left[0], left[1], left[2] = drainedUs, ofUs, ofUs
  cell.ticket = tokens and { numbers = '', words = tokens } or nil
  return run
end

-- The exports.
local paths = {}

-- Any other decisions. Answers where the next key and the next run are, and how much is answered.
function paths.anyRun(key, at, answered)
  local run
  size = answered
  run, at = runAt(at)
  local next = key + run.count * run.keys
  decideAll(run, key, next - 1)
  return next, at, size
end

-- One decision by one limit, as any other.
function paths.one(verb, label, k, cost, ofUs, drainedUs, answered, tokens)
  size = answered
  decideAll(oneRun(verb, label, cost, ofUs, drainedUs, tokens), k, k)
  return size
end

-- Notes the text of an error in place of an answer. What the script itself stumbles over is a state
-- that none of ours wrote.
function paths.note(failure, key, answered)
  local isTable = type(failure) == 'table'
  reply[answered + 1] = isTable and failure.said
    or 'SLUICE the key ' .. key .. ' does not hold a state that this version of Sluice wrote: ' .. (isTable and failure.what or failure)
  return answered + 1
end

-- Notes that Redis refused to write.
function paths.failed(said, key, answered)
  local _, failure = pcall(failAs, said)
  heldBy[key] = nil
  return paths.note(failure, key, answered)
end

return paths
