-- Large states are not read as a whole: a decision reads the words that it asks for, page by page,
-- and writes those that it changed in place. So what it costs does not depend on how large the
-- state is.

-- So many bytes of a key are read at once, and so many words from then on. Few, because reading
-- them takes time.
const.FIRST_BYTES, const.PAGE = 128, 16
-- Words that are so near to each other are written as one piece.
const.NEAR, const.MOST_OF_PIECE = 8, 2000
-- A key that is written in place lives so long at least: PEXPIRE deletes one at once whose last
-- millisecond passes meanwhile, and SETRANGE would make another.
const.LEAST_IN_PLACE_US = 1000000

-- A reply, unless it is an error.
local function checked(reply)
  if type(reply) == 'table' then
    failAs(reply)
  end
  return reply
end

-- A place in a key as an argument of a command. Mostly it is where a key begins.
local function placeText(place)
  if place == 1 then
    return '0'
  end
  return place < 2147483648 and string.format('%d', place - 1) or place - 1
end

-- The bytes of a key from one place to another.
local function rangeOf(key, from, to)
  return checked(try('GETRANGE', key, placeText(from), placeText(to)))
end

-- Reads a key as far as it is read at once, or so many bytes. `raw` is false for a key that is not
-- there.
local function open(held, key, bytes)
  local raw = try('GETRANGE', key, '0', bytes and placeText(bytes) or '127')
  if type(raw) == 'table' or raw == '' then
    -- Nothing, or a string of nothing.
    raw = checked(raw) == '' and checked(try('GET', key))
  end
  local size = raw and #raw or 0
  if size == (bytes or const.FIRST_BYTES) then
    size = checked(try('STRLEN', key))
  end
  held.key, held.raw, held.size = key, raw, size
  return raw
end

-- A word of a large state that is asked for the first time.
local function readWord(s, k)
  local words = s.words
  if not (k >= 1 and k <= words and k % 1 == 0) then
    return k > words and k < s.length and 0 or foreign('it has no word ' .. k)
  end
  local inPage = (k - 1) % const.PAGE
  local pages, page = s.pages, k - inPage
  local text = pages[page]
  if not text then
    local from = s.at + page * 8 - 8
    text = bytesOf(s.held, from, from + (page + const.PAGE <= words and const.PAGE or words - page + 1) * 8 - 1)
    pages[page] = text
  end
  local word = unpackBytes('>d', text, inPage * 8 + 1)
  if not (word >= 0 and word < const.NO_NUMBER and word % 1 == 0) then
    foreign('a word is out of range')
  end
  local touched, count = s.touched, s.count
  touched[count + 1], touched[count + 2] = k, word
  s.count = count + 2
  rawset(s, k, word)
  return word
end

local LARGE = {
  __index = readWord,
  __newindex = function(s, k, word)
    if not (k >= 1 and k < s.length and k % 1 == 0) then
      foreign('it has no word ' .. k)
    end
    local touched, count = s.touched, s.count
    touched[count + 1], touched[count + 2] = k, false
    s.count = count + 2
    rawset(s, k, word)
  end,
}

-- A large state of which nothing but the first words is read. `at`: where its words begin.
-- `touched`: the words that were read or written since, each with what was read. `s`: the one that
-- was there before, in the same key or another, if that is needed no more.
local function largeState(held, shape, head, at, s)
  local words, text, from = shape[const.WORDS], held.raw, at
  if words <= const.MOST_TAGGED then
    foreign(words .. ' words are no large state')
  elseif at + const.HEAD_WORDS * 8 > #text + 1 then
    text, from = bytesOf(held, at, at + const.HEAD_WORDS * 8 - 1), 1
  end
  local a, b, c, d, e, f, g, h, i, j = unpackBytes('>dddddddddd', text, from)
  local parts = a % 1 + b % 1 + c % 1 + d % 1 + e % 1 + f % 1 + g % 1 + h % 1 + i % 1 + j % 1
  -- Infinity leaves no number as its part.
  if not (parts == 0 and math.min(a, b, c, d, e, f, g, h, i, j) >= 0 and math.max(a, b, c, d, e, f, g, h, i, j) < const.NO_NUMBER) then
    foreign('a word is out of range')
  end
  if not s then
    s = { a, b, c, d, e, f, g, h, i, j, held = held, at = at, words = words, head = head, length = words + 1, pages = {}, touched = {}, count = 0 }
    return setmetatable(s, LARGE)
  end
  for k = 1, s.count, 2 do
    s[s.touched[k]] = nil
  end
  if next(s.pages) then
    s.pages = {}
  end
  s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10] = a, b, c, d, e, f, g, h, i, j
  s.at, s.words, s.head, s.length, s.count = at, words, head, words + 1, 0
  return s
end

-- The words that changed behind the first ones, in pieces, added to so many: the place of each in
-- the state, and its bytes. Words beyond the last one are left out. Answers how many there are
-- then.
local function addChanges(pieces, size, s, last)
  local touched, count = s.touched, s.count
  -- Nothing but the first ones.
  if count == 0 then
    return size
  end
  -- Mostly two words were written that had not been read, beside each other.
  if count == 4 and not touched[2] and not touched[4] and touched[3] == touched[1] + 1 and touched[3] <= last then
    pieces[size + 1], pieces[size + 2] = touched[1], pack('>dd', s[touched[1]], s[touched[3]])
    return size + 2
  end
  local changed = {}
  count = 0
  for j = 1, s.count, 2 do
    local k = touched[j]
    if k <= last and s[k] ~= touched[j + 1] then
      count = count + 1
      changed[count] = k
    end
  end
  table.sort(changed)
  local j = 1
  while j <= count do
    local from, to = changed[j], changed[j]
    j = j + 1
    while j <= count and changed[j] - to <= const.NEAR and changed[j] - from < const.MOST_OF_PIECE do
      to, j = changed[j], j + 1
    end
    for k = from, to do
      -- So that it is in the table.
      local _ = s[k]
    end
    pieces[size + 1], pieces[size + 2] = from, doublesIn(s, from, to)
    size = size + 2
  end
  return size
end

-- Makes the function for the record of a state that has so many words from now on: few decisions
-- need it.
local function newRecords()
  -- The whole record of a large state of which only a part was read, if it has so many words from
  -- now on.
  local function changedRecordOf(label, s, words, idleAtUs)
    local kept, changes = math.min(words, s.words), {}
    local next, rest, zeros = const.HEAD_WORDS + 1, bytesOf(s.held, s.at, s.at + kept * 8 - 1), string.rep('\0', 8)
    local pieces = { beginning(largeHead(label, words), s, idleAtUs) }
    for k = 1, addChanges(changes, 0, s, words), 2 do
      local from, bytes = changes[k], changes[k + 1]
      pieces[#pieces + 1] = string.sub(rest, next * 8 - 7, from * 8 - 8)
      -- Behind the end there are zeros.
      pieces[#pieces + 1] = string.rep(zeros, from - math.max(kept + 1, next))
      pieces[#pieces + 1] = bytes
      next = from + #bytes / 8
    end
    pieces[#pieces + 1] = string.sub(rest, next * 8 - 7)
    pieces[#pieces + 1] = string.rep(zeros, words - math.max(kept, next - 1))
    return table.concat(pieces)
  end

  local function recordFor(cell, words, idleAtUs)
    local own, s = cell.own, cell.s
    if words <= const.MOST_TAGGED then
      return recordOf(own.label, own, s[1], s[2], s[3], s[4], s, words, idleAtUs)
    elseif getmetatable(s) == LARGE then
      return changedRecordOf(own.label, s, words, idleAtUs)
    end
    return doublesOf(own.label, s, words, idleAtUs)
  end

  return recordFor
end

-- Makes room in the state of a cell for one more charge. `words`: how many it has, 0 for a new one.
local function grown(cell, words)
  local own, s = cell.own, cell.s
  local fresh = own.freshWords
  for k = 1, words == 0 and fresh or 0 do
    s[k] = 0
  end
  local most = own.neededWords(s, 1)
  -- Entries that are not there would be looked for one by one.
  if not (most >= 0 and (most <= 2 * own.words or most <= 2 * words)) then
    foreign('it says that it has ' .. most .. ' words')
  end
  most = most > words and most or words
  cell.most, s.length = most, most + 1
  for k = (words > fresh and words or fresh) + 1, s.words and 0 or most do
    s[k] = 0
  end
end

-- How many words the state of a cell takes from now on. They are all there.
local function wordsToWrite(cell)
  local own, s = cell.own, cell.s
  local words, needed = own.words, own.neededWords and own.neededWords(s, 1)
  if needed then
    -- A log that keeps its entries under a smaller limit has more.
    words = (needed < words or cell.most > words) and needed or words
    for k = cell.most + 1, s.words and 0 or words do
      s[k] = 0
    end
  end
  return words
end

-- The record of the state of a cell, however large.
local known
local function recordFor(cell, words, idleAtUs)
  known = known or newRecords()
  return known(cell, words, idleAtUs)
end

-- Adds to the pieces of a key those of a large state whose record begins at a place, and keeps its
-- size.
local function addLarge(pieces, size, s, from, idleAtUs)
  local last = addChanges(pieces, size, s, s.words)
  for k = size + 1, last, 2 do
    pieces[k] = s.at + pieces[k] * 8 - 8
  end
  pieces[last + 1], pieces[last + 2] = from, beginning(s.head, s, idleAtUs)
  return last + 2
end

-- What has to be written into a key, if no record changes its size: the place of each piece and its
-- bytes, and in `size` how many that is. Nil if one does.
local function piecesInPlace(cells, place)
  local pieces = { size = 0 }
  for k = 0, cells.length - 1 do
    local cell = cells[k]
    if cell.place == place and cell.changed then
      local own, s, idleAtUs = cell.own, cell.s, nowUs + cell.verdict.resetUs
      if not cell.isHeld then
        return nil
      elseif getmetatable(s) == LARGE and s.words == wordsToWrite(cell) and shapes[s.head][const.LABEL] == own.label then
        pieces.size = addLarge(pieces, pieces.size, s, cell.from, idleAtUs)
      else
        local text = recordFor(cell, wordsToWrite(cell), idleAtUs)
        if #text ~= cell.to - cell.from + 1 then
          return nil
        end
        pieces[pieces.size + 1], pieces[pieces.size + 2] = cell.from, text
        pieces.size = pieces.size + 2
      end
    end
  end
  return pieces
end

-- Writes pieces into a key, each at its place, and sets its time to live, unless it lives as long
-- by now (`livesUs`). The key lives longer before it holds more: where one of the commands is
-- refused, nothing is lost.
local function writeInPlace(key, pieces, size, livesUntilUs, livesUs)
  if not hasWritten then
    -- Changes nothing, but is refused where the server is full. What comes behind the first write
    -- of a script is not.
    checked(try('SETRANGE', key, '0', ''))
    hasWritten = true
  end
  if livesUs ~= livesUntilUs then
    local leastUs = nowUs + const.LEAST_IN_PLACE_US
    checked(try('PEXPIRE', key, ttlOf(livesUntilUs > leastUs and livesUntilUs or leastUs)))
  end
  for k = 1, size, 2 do
    checked(try('SETRANGE', key, placeText(pieces[k]), pieces[k + 1]))
  end
end

-- Writes the state of a cell that has its key for itself and was found by its numbers, if it was
-- found: in place, where its size stays.
local ownPieces = {}
local function store(key, cell, untilUs, livesUntilUs, livesUs)
  local s, words = cell.s, wordsToWrite(cell)
  if s.words == words then
    writeInPlace(key, ownPieces, addLarge(ownPieces, 0, s, 1, untilUs), livesUntilUs, livesUs)
  else
    write(key, recordFor(cell, words, untilUs), livesUntilUs, livesUs)
  end
end
