-- States as bytes: the twin of codec.ts, where the layout and the reasons are.
--
-- A state is a table here, its words from 1 on. Most of what a record says is the same for many keys, so it is worked out once for a script
-- call: what a head says, and which head a state needs.

local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil
local pack, unpackBytes, structSize = struct.pack, struct.unpack, struct.size
local byte, char, sub, rep = string.byte, string.char, string.sub, string.rep

local NO_NUMBER = 9007199254740992
local MAX_BACK = 281474976710656
local LEAD, LONG_TAGS, BACK, MINUS_ONE = 4, 6, 8, 15
-- How a word with a tag is packed. One without bytes is packed as none, and unpacked as 0.
local FORM = { [0] = 'I0', 'I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I0', 'I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I0' }
-- A call takes no more values than fit Lua's stack.
local MOST_AT_ONCE = 4000

-- What heads say, by head; and by label, then by tags.
local shapes, shapesOf = {}, {}

-- Bytes that we did not write.
local function foreign(what)
  error({ what = what }, 0)
end

-- The figures that a label names: an array, and whether its last one is whole.
local function figuresOf(label)
  local figures, count, number, unit = {}, 0, 0, 1
  for place = 4 + byte(label, 2), #label do
    local digit = byte(label, place)
    number, unit = number + digit % 64 * unit, unit * 64
    if digit < 64 then
      local zeros = number % 8
      figures[count] = (number - zeros) / 8 * 10 ^ zeros
      count, number, unit = count + 1, 0, 1
    end
  end
  figures.length = count
  return figures, unit == 1
end

-- How so many words are packed that two tags take in turn.
local function behindForm(even, odd, count)
  return rep(FORM[even] .. FORM[odd], (count - count % 2) / 2) .. (count % 2 == 1 and FORM[even] or '')
end

-- By which number a shape is known among those of its label: of its tags and of how many words there are.
local function numberOf(tags, lead, even, odd, behind)
  return (((tags * 16 + even) * 16 + odd) * 8 + lead) * 16777216 + behind
end

-- What a head says. `tags`: those of the first four words, four bits each; so many of them are written. So many words stand behind those, with
-- two tags in turn. A shape has that, how many words there are in all, how they are unpacked and how many bytes they take.
local function newShape(head, label, tags, lead, even, odd, behind)
  local d = tags % 16
  local c = (tags - d) / 16 % 16
  local b = (tags - tags % 256) / 256 % 16
  local a = (tags - tags % 4096) / 4096
  local form, words = '>' .. FORM[a] .. FORM[b] .. FORM[c] .. FORM[d], lead + behind
  if behind > 0 then
    form = form .. behindForm(even, odd, behind < MOST_AT_ONCE and behind or MOST_AT_ONCE)
  elseif lead > 0 and (lead == LEAD and d or b) == 0 then
    -- The last of an odd number has no other beside it in its byte.
    words = lead - 1
  end
  local size = structSize(form)
  if behind > MOST_AT_ONCE then
    local rest = behind - MOST_AT_ONCE
    size = size + ceil(rest / 2) * structSize(FORM[even]) + floor(rest / 2) * structSize(FORM[odd])
  end
  local shape = { head = head, label = label, words = words, form = form, size = size, a = a, b = b, c = c, d = d, even = even, odd = odd }
  shapes[head] = shape
  shapesOf[label] = shapesOf[label] or {}
  shapesOf[label][numberOf(tags, lead, even, odd, behind)] = shape
  return shape
end

-- The shape that a head has which was read.
local function shapeOf(head)
  local nameSize = byte(head, 2)
  local figuresSize = nameSize and byte(head, 3 + nameSize)
  local labelSize = figuresSize and 3 + nameSize + figuresSize
  if not labelSize or labelSize > #head then
    foreign('the head of a record is too short')
  end
  local size = #head - labelSize
  if size <= 2 then
    local first, second = byte(head, labelSize + 1, labelSize + 2)
    return newShape(head, sub(head, 1, labelSize), (first or 0) * 256 + (second or 0), size * 2, 0, 0, 0)
  elseif size ~= LONG_TAGS then
    foreign(size .. ' bytes are no tags')
  end
  local first, second, turns, high, middle, low = byte(head, labelSize + 1, labelSize + LONG_TAGS)
  local odd, behind = turns % 16, high * 65536 + middle * 256 + low
  return newShape(head, sub(head, 1, labelSize), first * 256 + second, LEAD, (turns - odd) / 16, odd, behind)
end

-- The shape of a state that is to be written.
local function shapeFor(label, tags, lead, even, odd, behind)
  local written = ''
  if behind > 0 then
    written = char((tags - tags % 256) / 256, tags % 256, even * 16 + odd, floor(behind / 65536), floor(behind / 256) % 256, behind % 256)
  elseif lead == LEAD then
    written = char((tags - tags % 256) / 256, tags % 256)
  elseif lead > 0 then
    written = char((tags - tags % 256) / 256)
  end
  return newShape(label .. written, label, tags, lead, even, odd, behind)
end

-- How a whole record is packed.
local function wholeOf(shape)
  shape.whole = '>I7Bc0' .. shape.form
  return shape.whole
end

-- The words from one place on whose tag counts them back, every second of them.
local function readBack(s, tag, from, last, idleAtUs)
  for k = from, tag >= BACK and last or 0, 2 do
    s[k] = tag < MINUS_ONE and idleAtUs - s[k] or -1
  end
end

-- The words of a record, and zeros behind them, so many at least in all. `at`: where their bytes begin; they are all there. Those of a long state
-- are in a table of their own, the others in `s`.
local function readWords(shape, raw, at, idleAtUs, s, least)
  local words, a, b, c, d = shape.words, 0, 0, 0, 0
  if words <= LEAD then
    a, b, c, d = unpackBytes(shape.form, raw, at)
    words = LEAD
  else
    s = { unpackBytes(shape.form, raw, at) }
    for first = LEAD + MOST_AT_ONCE + 1, words, MOST_AT_ONCE do
      local count = min(words - first + 1, MOST_AT_ONCE)
      local found = { unpackBytes('>' .. behindForm(shape.even, shape.odd, count), raw, s[first]) }
      for k = 1, count + 1 do
        s[first + k - 1] = found[k]
      end
    end
    -- There it says where the bytes ended.
    s[words + 1] = nil
    a, b, c, d = s[1], s[2], s[3], s[4]
    readBack(s, shape.even, LEAD + 1, words, idleAtUs)
    readBack(s, shape.odd, LEAD + 2, words, idleAtUs)
  end
  local tag = shape.a
  s[1] = tag < BACK and a or tag < MINUS_ONE and idleAtUs - a or -1
  tag = shape.b
  s[2] = tag < BACK and b or tag < MINUS_ONE and idleAtUs - b or -1
  tag = shape.c
  s[3] = tag < BACK and c or tag < MINUS_ONE and idleAtUs - c or -1
  tag = shape.d
  s[4] = tag < BACK and d or tag < MINUS_ONE and idleAtUs - d or -1
  for k = words + 1, least do
    s[k] = 0
  end
  return s
end

local function bytesFor(number)
  if number < 16777216 then
    return number < 256 and (number > 0 and 1 or 0) or number < 65536 and 2 or 3
  end
  return number < 4294967296 and 4
    or number < 1099511627776 and 5
    or number < 281474976710656 and 6
    or number < NO_NUMBER and 7
    or foreign('a word is out of range')
end

-- The tag of every second word from a place on.
local function turnTagOf(s, from, count, idleAtUs)
  local least, most = s[from] or 0, s[from] or 0
  for k = from + 2, count, 2 do
    local word = s[k]
    if word < least then
      least = word
    elseif word > most then
      most = word
    end
  end
  local back = idleAtUs - least
  if least == -1 and most == -1 then
    return MINUS_ONE
  elseif idleAtUs >= most and back < MAX_BACK and (least < 0 or back < most) then
    return BACK + bytesFor(back)
  end
  return least >= 0 and bytesFor(most) or foreign('a word is out of range')
end

-- The numbers of the first words of the record that is being written.
local numbers = { 0, 0, 0, 0 }

-- The words behind the fourth as they are packed.
local function behindNumbers(s, count, even, odd, idleAtUs)
  if even < BACK and odd < BACK then
    return s
  end
  local written = {}
  for k = LEAD + 1, count, 2 do
    written[k] = even < BACK and s[k] or idleAtUs - s[k]
    written[k + 1] = k < count and (odd < BACK and s[k + 1] or idleAtUs - s[k + 1]) or nil
  end
  return written
end

local function longRecordOf(label, s, count, tags, idleAtUs)
  local even, odd, behind = turnTagOf(s, LEAD + 1, count, idleAtUs), turnTagOf(s, LEAD + 2, count, idleAtUs), count - LEAD
  local known = shapesOf[label]
  local shape = known and known[numberOf(tags, LEAD, even, odd, behind)] or shapeFor(label, tags, LEAD, even, odd, behind)
  local head, words = shape.head, behindNumbers(s, count, even, odd, idleAtUs)
  local a, b, c, d = numbers[1], numbers[2], numbers[3], numbers[4]
  if behind <= MOST_AT_ONCE then
    return pack(shape.whole or wholeOf(shape), idleAtUs, #head, head, a, b, c, d, unpack(words, LEAD + 1, count))
  end
  local pieces = { pack(shape.whole or wholeOf(shape), idleAtUs, #head, head, a, b, c, d, unpack(words, LEAD + 1, LEAD + MOST_AT_ONCE)) }
  for first = LEAD + MOST_AT_ONCE + 1, count, MOST_AT_ONCE do
    local last = min(first + MOST_AT_ONCE - 1, count)
    pieces[#pieces + 1] = pack('>' .. behindForm(even, odd, last - first + 1), unpack(words, first, last))
  end
  return table.concat(pieces)
end

-- The record of the state in `s`, which has so many words at most and is idle at a time.
local function recordOf(label, s, most, idleAtUs)
  local count, tags = most, 0
  while count > 0 and s[count] == 0 do
    count = count - 1
  end
  if not (idleAtUs < NO_NUMBER) then
    foreign('a state has no end')
  end
  for k = 1, LEAD do
    local word, tag = k <= count and s[k] or 0, 0
    if word ~= 0 then
      local back = idleAtUs - word
      if word == -1 then
        word, tag = 0, MINUS_ONE
      else
        if back >= 0 and back < MAX_BACK and (back < word or word < 0) then
          word, tag = back, BACK
        end
        if word ~= 0 then
          tag = tag + (word > 0 and bytesFor(word) or foreign('a word is out of range'))
        end
      end
    end
    numbers[k], tags = word, tags * 16 + tag
  end
  if count > LEAD then
    return longRecordOf(label, s, count, tags, idleAtUs)
  end
  local lead, known = count > 2 and LEAD or count > 0 and 2 or 0, shapesOf[label]
  local shape = known and known[numberOf(tags, lead, 0, 0, 0)] or shapeFor(label, tags, lead, 0, 0, 0)
  local head = shape.head
  return pack(shape.whole or wholeOf(shape), idleAtUs, #head, head, numbers[1], numbers[2], numbers[3], numbers[4])
end
