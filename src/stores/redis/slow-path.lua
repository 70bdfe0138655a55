-- What the fast path leaves: how keys are read and written, and then one of the two ways to decide,
-- general-path.lua (`isGeneral`) or long-path.lua. This is the body of a function, which is called
-- for each of them when it is first needed, behind codec.lua.

local try, keys, ARGV, type, byte, sub = redis.pcall, KEYS, ARGV, type, string.byte, string.sub
-- The longest head of a record, with what stands before it.
const.MOST_HEAD = 263

-- How much is answered; where the keys of the decision begin that is being made, and the key that
-- is being read.
local size, current, reading = 0, 1, 1
local hasWritten = false

-- Fails as Redis says; a key of another type is none of ours. (Redis 7 would make a string of an
-- error that has an `err` when it is caught.)
local function failAs(reply)
  local isOther = string.find(reply.err, 'WRONGTYPE', 1, true)
  error(isOther and { what = reply.err } or { said = reply.err }, 0)
end

-- The time to live until a time. Many keys may have the same.
local knownUs, knownTtl = -1, ''
local function ttlOf(untilUs)
  if untilUs ~= knownUs then
    local ms = math.max(math.ceil((untilUs - nowUs) / 1000), leastTtlMs)
    knownUs, knownTtl = untilUs, ms < const.MOST_AS_TEXT and string.format('%d', ms) or ms
  end
  return knownTtl
end

-- Sets a key and its time to live, unless it lives as long by now (`livesUs`).
local function write(key, value, livesUntilUs, livesUs)
  local done = livesUs == livesUntilUs and try('SET', key, value, 'XX', 'KEEPTTL')
  if not done then
    -- Answered with what it held, which Lua has already, where an OK would be a table. It refuses
    -- to write over a key of another type.
    done = try('SET', key, value, 'PX', ttlOf(livesUntilUs), 'GET')
  end
  if done and done.err then
    failAs(done)
  end
  heldBy[key], hasWritten = not isLarge and value or nil, true
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

-- Makes the functions for large states when they are first needed.
local pages

-- The numbers in a text, from 0 on.
local function wordsIn(text)
  local words, count = { [0] = tonumber(text), length = 1 }, 0
  if words[0] then
    return words
  end
  for word in string.gmatch(text, '%S+') do
    words[count], count = tonumber(word), count + 1
  end
  words.length = count
  return words
end

-- The bytes from one place to another, which are all there.
local function bytesOf(held, from, to)
  return to <= #held.raw and string.sub(held.raw, from, to) or pages().rangeOf(held.key, from, to)
end

function pages()
  --[[PAGES]]
  local made = { open = open, rangeOf = rangeOf, largeState = largeState, recordFor = recordFor, wordsToWrite = wordsToWrite, piecesInPlace = piecesInPlace, writeInPlace = writeInPlace, grown = grown, store = store }
  function pages()
    return made
  end
  return made
end

-- The general path. The long path makes it when it first needs it.
local made
local function general()
  made = made or newSlowPath(newSlowPath, true, nowUs, leastTtlMs, reply, values, heldBy, isLarge, sayInFull, stepOf, figuresOf, leadTags)
  return made
end

-- Makes the decisions of a run. It goes on behind one that cannot be made.
local function decideAll(run, key, last)
  while key <= last do
    current = key
    local isMade, failure = pcall(run.each, run, key, last)
    key = last + 1
    if not isMade then
      size = general().note(failure, keys[run.keys == 1 and current or reading], size)
      key = current + run.keys
    end
  end
end

if isGeneral then
  local function newGeneral()
    --[[GENERAL PATH]]
  end
  made = newGeneral()
  return made
end
