-- States as bytes: the twin of codec.ts, where the layout and the reasons are. Bytes that we did
-- not write are an error { what = ... }.
--
-- A state is a table here, its words from 1 on. Most of what a record says is the same for many
-- keys, so it is worked out once for a script call: what a head says, and which head a state needs.

local pack, unpackBytes = struct.pack, struct.unpack

const.LEAD, const.LONG_TAGS = 4, 6
-- States of more words are large: their words are doubles. So many bytes tell how many.
const.MOST_TAGGED, const.DOUBLE_TAGS = 20, 3
-- A call takes no more values than fit Lua's stack.
const.MOST_AT_ONCE = 4000

-- What heads say, each a list: the label, how many words there are, how they are unpacked and how
-- many bytes they take, the tags of the first four (behind TAGS), the two that those behind them
-- take in turn; and for which run of decisions the limit that it is about was looked up, its cell,
-- and the numbers that it is written by (see run.lua).
const.LABEL, const.WORDS, const.FORM, const.SIZE, const.TAGS, const.EVEN, const.ODD, const.RUN, const.CELL, const.OWN = 1, 2, 3, 4, 4, 9, 10, 11, 12, 13
-- With room for one, as a lone decision needs it: tables that grow are made anew.
local shapes = { one = nil }

-- How a word with a tag is packed. One without bytes is packed as none, and unpacked as 0. A word
-- of another version may have the last tag.
local FORMS = { [0] = 'I0', 'I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I0', 'I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I0' }

-- Bytes that we did not write.
local function foreign(what)
  error({ what = what }, 0)
end

-- A word of one of the last tags, as it was unpacked.
local function wordOf(tag, number, idleAtUs)
  local word = tag < const.BACK and number or idleAtUs - number
  return tag < const.TAGS_END and word >= 0 and word < const.NO_NUMBER and word or foreign('a word is out of range')
end

-- The formats of levels, and of windows that are counts.
local function isLevel(format)
  return format <= 3
end
local function isCounted(format)
  return format == 4 or format == 7
end

-- Whether the words of a state can be one under a rule: a level has no more units than may be in
-- use and a part that is one, and a window no larger count.
local function isState(own, s)
  if own.permits then
    return s[2] < own.permits and (s[1] - s[3]) * own.permits <= const.MOST_UNITS
  end
  return not own.isCounted or s[3] <= const.MOST_COUNT
end

-- What only states of more words need, made when it is first needed.
local function newLong()
  local floor, rep, char = math.floor, string.rep, string.char

  -- How so many words are packed that two tags take in turn.
  local function formOf(even, odd, count)
    return rep(FORMS[even] .. FORMS[odd], floor(count / 2)) .. (count % 2 == 1 and FORMS[even] or '')
  end

  -- Adds to a shape what stands behind the first words.
  local function extend(shape, even, odd, behind)
    if behind > const.MOST_TAGGED - const.LEAD then
      foreign(const.LEAD + behind .. ' words have no tags')
    end
    -- Filled up to what is read, with words that take no bytes.
    local form = shape[const.FORM] .. formOf(even, odd, behind) .. rep('I0', const.MOST_TAGGED - const.LEAD - behind)
    shape[const.WORDS], shape[const.FORM], shape[const.EVEN], shape[const.ODD], shape[const.SIZE] = const.LEAD + behind, form, even, odd, struct.size(form)
  end

  -- The words from one place on whose tag is one of the last, every second of them.
  local function readTagged(s, tag, from, words, idleAtUs)
    for k = from, tag >= const.WIDEST and words or 0, 2 do
      s[k] = wordOf(tag, s[k], idleAtUs)
    end
  end

  -- All words of a record, the first four as they are packed.
  local function read(shape, raw, at, idleAtUs, s)
    local words = shape[const.WORDS]
    s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15], s[16], s[17], s[18], s[19], s[20] = unpackBytes(shape[const.FORM], raw, at)
    readTagged(s, shape[const.EVEN], const.LEAD + 1, words, idleAtUs)
    readTagged(s, shape[const.ODD], const.LEAD + 2, words, idleAtUs)
  end

  local function bytesFor(number)
    local bytes = 0
    while number >= 1 do
      number, bytes = number / 256, bytes + 1
    end
    return bytes
  end

  -- The tag of every second word from a place on.
  local function tagOf(s, from, count, idleAtUs)
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
    if least >= 0 and idleAtUs >= most and back < const.MAX_BACK and back < most then
      return const.BACK + bytesFor(back)
    end
    return least >= 0 and most < const.NO_NUMBER and bytesFor(most) or foreign('a word is out of range')
  end

  -- The words behind the first ones as they are packed.
  local function numbersOf(s, count, even, odd, idleAtUs)
    if even < const.BACK and odd < const.BACK then
      return s
    end
    local numbers = {}
    for k = const.LEAD + 1, count, 2 do
      numbers[k] = even < const.BACK and s[k] or idleAtUs - s[k]
      numbers[k + 1] = k < count and (odd < const.BACK and s[k + 1] or idleAtUs - s[k + 1]) or nil
    end
    return numbers
  end

  -- The record of a state of so many words. `tags`, and a to d: those of the first four, and their
  -- numbers.
  local function write(label, forms, heads, s, count, tags, a, b, c, d, idleAtUs)
    local even, odd, behind = tagOf(s, const.LEAD + 1, count, idleAtUs), tagOf(s, const.LEAD + 2, count, idleAtUs), count - const.LEAD
    local numbers, number = numbersOf(s, count, even, odd, idleAtUs), ((tags * 16 + even) * 16 + odd) * 256 + behind
    local form, head = forms[number], heads[number]
    if not form then
      head = label .. char(floor(tags / 256), tags % 256, even * 16 + odd, 0, 0, behind)
      form = '>I7Bc0' .. FORMS[floor(tags / 4096)] .. FORMS[floor(tags / 256) % 16] .. FORMS[floor(tags / 16) % 16] .. FORMS[tags % 16] .. formOf(even, odd, behind)
      forms[number], heads[number] = form, head
    end
    return pack(form, idleAtUs, #head, head, a, b, c, d, unpack(numbers, const.LEAD + 1, count))
  end

  return { extend = extend, read = read, write = write }
end

local long

-- The shape of a head, which is not known yet. `label`: the one that it probably has, or nil.
local function shapeOf(head, label)
  local byte, sub, labelSize = string.byte, string.sub, label and #label
  if not label or sub(head, 1, labelSize) ~= label then
    local nameSize = byte(head, 2)
    local figuresSize = nameSize and byte(head, 3 + nameSize)
    labelSize = figuresSize and 3 + nameSize + figuresSize
    if not labelSize or labelSize > #head then
      foreign('the head of a record is too short')
    end
    label = sub(head, 1, labelSize)
  end
  local lead, first, second, turns, high, middle, low = #head - labelSize, byte(head, labelSize + 1, labelSize + 6)
  if lead == const.DOUBLE_TAGS then
    local words = first * 65536 + second * 256 + turns
    shapes[head] = { label, words, false, words * 8, isLarge = true }
    return shapes[head]
  elseif lead > 2 and lead ~= const.LONG_TAGS then
    foreign(lead .. ' bytes are no tags')
  end
  first, second = first or 0, second or 0
  local b, d = first % 16, second % 16
  local a, c = (first - b) / 16, (second - d) / 16
  local form = '>' .. FORMS[a] .. FORMS[b] .. FORMS[c] .. FORMS[d]
  -- The last of an odd number has no other beside it in its byte.
  local words = lead == 0 and 0 or lead == 1 and (b > 0 and 2 or 1) or (d > 0 and 4 or 3)
  -- A list of that length from the beginning: tables that grow are made anew.
  local shape = { label, words, form, struct.size(form), a, b, c, d, 0, 0, false, false, false }
  local behind = turns and high * 65536 + middle * 256 + low or 0
  if behind > 0 then
    local odd = turns % 16
    long = long or newLong()
    long.extend(shape, (turns - odd) / 16, odd, behind)
  end
  shapes[head] = shape
  return shape
end

-- The words of a record, and zeros behind them, so many at least in all. `at`: where their bytes
-- begin; they are all there.
local function readWords(shape, raw, at, idleAtUs, s, least)
  local words = shape[const.WORDS]
  if words > const.LEAD then
    long.read(shape, raw, at, idleAtUs, s)
  else
    s[1], s[2], s[3], s[4] = unpackBytes(shape[const.FORM], raw, at)
    words = const.LEAD
  end
  --[[WORDS BY TAGS]]
  for k = words + 1, least do
    s[k] = 0
  end
  return s
end

-- The record of a state that is idle at a time: its first four words, and if there are more, `s`
-- with all of them, so many at most. `written`: the forms and the heads of records that were
-- written with this label.
local function recordOf(label, written, s1, s2, s3, s4, s, most, untilUs)
  local forms, heads, count = written.forms, written.heads, most
  while count > const.LEAD and s[count] == 0 do
    count = count - 1
  end
  if not (untilUs < const.NO_NUMBER) then
    foreign('a state has no end')
  end
  local n1, n2, n3, n4 = 0, 0, 0, 0
  --[[TAGS OF WORDS]]
  if not (n1 and n2 and n3 and n4) then
    foreign('a word is out of range')
  end
  local tags = ((n1 * 16 + n2) * 16 + n3) * 16 + n4
  if count > const.LEAD then
    long = long or newLong()
    return long.write(label, forms, heads, s, count, tags, s1, s2, s3, s4, untilUs)
  end
  local form, head = forms[tags], heads[tags]
  if not form then
    form = '>I7Bc0' .. FORMS[n1] .. FORMS[n2] .. FORMS[n3] .. FORMS[n4]
    head = label .. leadTags(n1, n2, n3, n4)
    forms[tags], heads[tags] = form, head
  end
  return pack(form, untilUs, #head, head, s1, s2, s3, s4)
end
