-- Long states (see codec.ts) are not read as a whole: a decision reads the words that it asks for, page by page, and writes those that it changed
-- in place. So what it costs does not depend on how long the state is.

-- So many bytes of a key are read at once, and so many words from then on.
local FIRST_BYTES, PAGE = 4096, 64
-- Words of a state that are so near to each other are written as one piece.
local NEAR, MOST_OF_PIECE = 8, 2000
-- Keys of fewer bytes are written as a whole, because that is one command.
local LEAST_IN_PLACE = 512
-- The longest head of a record, with what stands before it.
local MOST_HEAD = 263

-- A reply, unless it is an error.
local function checked(reply)
  if type(reply) == 'table' then
    failAs(reply)
  end
  return reply
end

-- Reads a key as far as it is read at once. `raw` is false for a key that is not there.
local function open(held, key)
  local raw = checked(try('GETRANGE', key, 0, FIRST_BYTES - 1))
  if raw == '' then
    -- Nothing, or a string of nothing.
    raw = checked(try('GET', key))
  end
  held.raw, held.size = raw, raw and #raw or 0
  if held.size == FIRST_BYTES then
    held.size = checked(try('STRLEN', key))
  end
end

-- The bytes from one place to another, which are all there.
local function bytesOf(held, from, to)
  if to <= #held.raw then
    return sub(held.raw, from, to)
  end
  return checked(try('GETRANGE', held.key, from - 1, to - 1))
end

local function checkWord(word)
  if not (word >= -1 and word < NO_NUMBER and word % 1 == 0) then
    foreign('a word is out of range')
  end
  return word
end

-- A word of a long state that is asked for the first time.
local function readWord(s, k)
  local last = s.words
  if k > last then
    return k < s.length and 0 or foreign('it has no word ' .. k)
  end
  local held, at = s.held, s.at + k * 8 - 8
  local word
  if at + 7 <= #held.raw then
    word = unpackBytes('>d', held.raw, at)
  else
    local page = (k - 1 - (k - 1) % PAGE) / PAGE
    local text = s.pages[page]
    if not text then
      local from = s.at + page * PAGE * 8
      text = bytesOf(held, from, min(from + PAGE * 8, s.at + last * 8) - 1)
      s.pages[page] = text
    end
    word = unpackBytes('>d', text, (k - 1) % PAGE * 8 + 1)
  end
  s.seen = s.seen + 1
  s.places[s.seen], s.before[k] = k, checkWord(word)
  rawset(s, k, word)
  return word
end

local LONG = {
  __index = readWord,
  __newindex = function(s, k, word)
    s.seen = s.seen + 1
    s.places[s.seen] = k
    rawset(s, k, word)
  end,
}

-- A long state of which nothing but the first words is read. `at`: where its words begin.
local function longState(held, shape, at)
  if shape.words <= MOST_TAGGED then
    foreign(shape.words .. ' words are no long state')
  end
  local text, from = held.raw, at
  if at + HEAD_WORDS * 8 > #text then
    text, from = bytesOf(held, at, at + HEAD_WORDS * 8 - 1), 1
  end
  local s = { unpackBytes('>dddddddd', text, from) }
  s[HEAD_WORDS + 1] = nil
  for k = 1, HEAD_WORDS do
    checkWord(s[k])
  end
  s.held, s.at, s.words, s.label, s.length = held, at, shape.words, shape.label, shape.words + 1
  -- Which words were read or written since, and what was read.
  s.pages, s.places, s.before, s.seen = {}, {}, {}, 0
  return setmetatable(s, LONG)
end

-- The words behind the first that changed, in pieces: { first, last, bytes, ... }. Words beyond so many are left out.
local function changesOf(s, words)
  local changed, count = {}, 0
  for j = 1, s.seen do
    local k = s.places[j]
    if k <= words and s[k] ~= s.before[k] then
      count = count + 1
      changed[count] = k
    end
  end
  table.sort(changed)
  local pieces, size, j = {}, 0, 1
  while j <= count do
    local first, last = changed[j], changed[j]
    j = j + 1
    while j <= count and changed[j] - last <= NEAR and changed[j] - first < MOST_OF_PIECE do
      last, j = changed[j], j + 1
    end
    for k = first, last do
      -- So that it is there for `unpack`.
      local _ = s[k]
    end
    pieces[size + 1], pieces[size + 2], pieces[size + 3] = first, last, doublesIn(s, first, last)
    size = size + 3
  end
  return pieces
end

-- The whole record of a long state of which only a part was read.
local function changedRecordOf(label, s, words, idleAtUs)
  local pieces = { longHead(label, s, words, idleAtUs) }
  local next = HEAD_WORDS + 1
  local kept, changes = min(words, s.words), changesOf(s, words)
  local rest = bytesOf(s.held, s.at, s.at + kept * 8 - 1)
  for k = 1, #changes, 3 do
    pieces[#pieces + 1] = sub(rest, next * 8 - 7, changes[k] * 8 - 8)
    -- Behind the end there are zeros.
    pieces[#pieces + 1] = rep('\0', (changes[k] - max(kept + 1, next)) * 8)
    pieces[#pieces + 1] = changes[k + 2]
    next = changes[k + 1] + 1
  end
  pieces[#pieces + 1] = sub(rest, next * 8 - 7)
  pieces[#pieces + 1] = rep('\0', (words - max(kept, next - 1)) * 8)
  return table.concat(pieces)
end

-- How many words the state of a cell takes from now on.
local function wordsToWrite(cell)
  local own, s = cell.own, cell.s
  local needed = own.algorithm.neededWords
  local words = needed and min(needed(s, 1), own.words) or own.words
  for k = cell.most + 1, getmetatable(s) == LONG and 0 or words do
    s[k] = s[k] or 0
  end
  return words
end

local function recordOfCell(cell, words, idleAtUs)
  local label, s = cell.own.label, cell.s
  if words <= MOST_TAGGED then
    return recordOf(label, s, words, idleAtUs)
  end
  return (getmetatable(s) == LONG and changedRecordOf or doublesOf)(label, s, words, idleAtUs)
end

-- What has to be written into a key if no record changes its size: { place, bytes, ... }; nil if one does.
local function piecesInPlace(cells, held, nowUs)
  local pieces, size = {}, 0
  for k = 1, #cells do
    local cell = cells[k]
    if cell.changed then
      local s, words, idleAtUs = cell.s, wordsToWrite(cell), nowUs + cell.verdict.resetUs
      local text
      if not cell.isHeld then
        return nil
      elseif getmetatable(s) == LONG and s.words == words and s.label == cell.own.label then
        text = longHead(s.label, s, words, idleAtUs)
        local changes = changesOf(s, words)
        for j = 1, #changes, 3 do
          pieces[size + 1], pieces[size + 2] = s.at + changes[j] * 8 - 8, changes[j + 2]
          size = size + 2
        end
      else
        text = recordOfCell(cell, words, idleAtUs)
        if #text ~= cell.to - cell.from + 1 then
          return nil
        end
      end
      pieces[size + 1], pieces[size + 2] = cell.from, text
      size = size + 2
    end
  end
  return pieces
end

-- Writes pieces into a key, which lives so long from now on. It lives longer before it holds more; if the second is refused, nothing is lost.
local function writeInPlace(key, pieces, ttlMs, isFirstWrite)
  if isFirstWrite then
    -- Changes nothing, but is refused where the server is full. What comes behind a first write of a script is not.
    checked(try('SETRANGE', key, 0, ''))
  end
  checked(try('PEXPIRE', key, ttlMs))
  for k = 1, #pieces, 2 do
    checked(try('SETRANGE', key, pieces[k] - 1, pieces[k + 1]))
  end
end
