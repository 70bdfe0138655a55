-- Decisions by one limit whose states are long, on keys that hold nothing or one state under the
-- same numbers; general-path.lua decides all others. What decides is generated from decide.ts, a
-- function for each verb.

-- A small state of permits, with its head, nearly always has fewer bytes.
const.SMALL_BYTES = 192

-- Deletes a key whose one state is idle by now, instead of writing that. Where the server is full,
-- or does not allow it, nothing is done: what comes behind the first write of a script is never
-- refused, so that is one which a full server refuses.
local function isDropped(key)
  if leastTtlMs > 1 or not hasWritten and type(try('SETRANGE', key, '0', '')) == 'table' or type(try('DEL', key)) == 'table' then
    return false
  end
  heldBy[key], hasWritten = false, true
  return true
end

-- Decisions by one limit whose states are long: their words are in a table. To settle, give back
-- and renew, `told` is the cost of each and what that is about.
local function longEach(run, first, last)
  local label, cost, ofUs, decide, words, neededWords, small = run.label, run.cost, -1, run.decide, run.words, run.neededWords, run.small
  local large, told, isReleased, isRenewal, tokens = (isLarge or neededWords) and pages(), run.told, run.verb == 'g', run.verb == 'r', nil
  local isSettlement = run.verb == 's'
  local each, drainedUs = isSettlement and 3 or 2, 0
  -- A large state goes on reading from what it was found in, also one that is used again. Of
  -- permits that are given back or renewed, nearly all states are small.
  local stepUs, held, bytes = run.stepUs, run.held, (isReleased or isRenewal) and const.SMALL_BYTES
  for k = first, last do
    local key, s, raw, total, idleAtUs = keys[k], small, nil, nil, 0
    current = k
    if told then
      local at = (k - run.first) * each
      cost, ofUs, drainedUs = told[at + 1], told[at + 2], isSettlement and told[at + 3]
      if isRenewal then
        tokens, ofUs = wordsIn(ofUs), -1
      end
    end
    if isLarge then
      raw = large.open(held, key, bytes)
      total = held.size
    else
      raw = heldBy[key]
      if raw == nil then
        raw = values[k]
      end
      if raw == nil then
        raw = look(key)
      end
      total = raw and #raw
    end
    local isUsual, isHeld, before = raw == false, false, 0
    if raw then
      local head, at
      idleAtUs, head, at = unpackBytes('>I7Bc0', raw, 1)
      local shape = shapes[head] or shapeOf(head, label)
      local form = shape[const.FORM]
      isUsual = shape[const.LABEL] == label and at + shape[const.SIZE] == total + 1 and shape[const.WORDS] <= words and idleAtUs < const.NO_NUMBER
      isHeld = isUsual and idleAtUs > nowUs
      before = isHeld and shape[const.WORDS] or 0
      if isHeld and not (form and total == #raw) then
        isUsual = isLarge and not form
        if isUsual then
          s = large.largeState(held, shape, head, at, run.known)
          run.known = s
        end
      elseif isHeld then
        s = readWords(shape, raw, at, idleAtUs, small, run.freshWords)
      end
      isUsual = isUsual and not (isHeld and not isState(run, s))
    end
    if isUsual and not isHeld and cost == run.freshCost then
      -- What is decided on a key that holds nothing is the same for all of them.
      write(key, run.freshText, run.freshLivesUntilUs)
      for j = 1, run.freshSize do
        reply[size + j] = run.fresh[j]
      end
      size = size + run.freshSize
    elseif isUsual then
      if isReleased then
        -- What gives back adds nothing.
        run.most = before
      elseif neededWords then
        run.s = s
        large.grown(run, before)
      end
      local answered = size
      local changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, given = decide(s, isHeld, cost, nowUs, ofUs, tokens)
      local untilUs, livesUs = nowUs + resetUs, raw and idleAtUs + -idleAtUs % stepUs
      local livesUntilUs = untilUs + -untilUs % stepUs
      if changed and resetUs == 0 and isReleased and isDropped(key) then
        -- Nothing is held any more.
      elseif changed and large and isHeld then
        run.s = s
        large.store(key, run, untilUs, livesUntilUs, livesUs)
      elseif changed then
        run.s = s
        local text = large and large.recordFor(run, large.wordsToWrite(run), untilUs) or recordOf(label, run, s[1], s[2], s[3], s[4], s, words, untilUs)
        write(key, text, livesUntilUs, livesUs)
        if not isHeld then
          run.freshText, run.freshLivesUntilUs = text, livesUntilUs
        end
      elseif not raw or try('PTTL', key) == -1 then
        -- Whether there is nothing is not sure. A key that lost its time to live would stay for
        -- ever.
        isUsual = false
      end
      if isUsual and isSettlement then
        size = size + 1
        reply[size] = outcome == 'allowed' and given or const.LIMITED
      elseif isUsual then
        if outcome == 'allowed' and delayUs == 0 and enteredUs == nowUs then
          reply[size + 1], reply[size + 2] = remaining, resetUs
          size = size + 2
        else
          size = sayInFull(reply, size, nowUs, outcome, remaining, retryUs, resetUs, delayUs, enteredUs)
        end
        if told then
          size = size + 1
          reply[size] = given
        elseif changed and not isHeld then
          run.fresh, run.freshCost, run.freshSize = { nil, nil }, cost, size - answered
          for j = 1, size - answered do
            run.fresh[j] = reply[answered + j]
          end
        end
      end
    end
    if not isUsual then
      size = general().one(run.verb, label, k, cost, ofUs, drainedUs, size, tokens)
    end
  end
end

-- What decides by one limit of an algorithm whose states are long.
local function longOf(format, verb, figures)
  --[[LONG]]
end

-- By its verb and its label: a run of those. It is the cell too, and what is known of its rule.
local longRuns = {}

local function newLongRun(verb, label)
  local decide, words, freshWords, windowUs, neededWords = longOf(byte(label), verb, figuresOf(label))
  local s = { 0, 0, 0, 0 }
  local run = {
    keys = 1,
    count = 0,
    each = longEach,
    verb = verb,
    label = label,
    cost = 0,
    first = 0,
    told = false,
    decide = decide,
    words = words,
    freshWords = freshWords,
    neededWords = neededWords,
    isCounted = isCounted(byte(label)),
    stepUs = stepOf(windowUs),
    forms = { one = nil },
    heads = { one = nil },
    s = s,
    small = s,
    own = false,
    most = words,
    held = isLarge and { key = '', raw = false, size = 0 },
    known = false,
    fresh = false,
    -- None: to settle, a cost may be below 0.
    freshCost = false,
    freshSize = 0,
    freshText = '',
    freshLivesUntilUs = 0,
  }
  run.own, longRuns[verb .. label] = run, run
  return run
end

-- Decisions by one limit whose states are long. Answers where the next key and the next run are,
-- and how much is answered.
local function longRun(verb, label, key, at, answered)
  local run, isPlain = longRuns[verb .. label] or newLongRun(verb, label), #ARGV < 4
  local count, cost = isPlain and #keys or tonumber(ARGV[at + 1]), ARGV[isPlain and 2 or at + 3]
  run.first, size = key, answered
  if verb == 's' or verb == 'g' or verb == 'r' then
    run.told = cjson.decode(cost)
  else
    run.cost = tonumber(cost)
  end
  decideAll(run, key, key + count - 1)
  return key + count, at + 4, size
end

return longRun
