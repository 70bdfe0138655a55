-- What a label and the tags of a record say (see codec.ts). Both the shortest way through a script
-- (fast-path.lua) and everything else (codec.lua) need it.

-- The most units of a level, and the largest count of a window.
const.MOST_UNITS, const.MOST_COUNT = 4503599627370496, 4294967295
const.NO_NUMBER, const.MAX_BACK = 9007199254740992, 281474976710656
-- From the first of these tags on a word may be out of range: one of seven bytes, and those that
-- are counted back. No word has the last one.
const.WIDEST, const.BACK, const.TAGS_END = 7, 8, 15

-- The figures that a label names: an array, and whether its last one is whole.
local function figuresOf(label)
  local byte = string.byte
  local figures, count, number, unit = { [0] = 0, 0, 0, 0, length = 0 }, 0, 0, 1
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

-- The bytes of the tags of the first four words, as few as there have to be.
local function leadTags(first, second, third, fourth)
  local char = string.char
  if third > 0 or fourth > 0 then
    return char(first * 16 + second, third * 16 + fourth)
  end
  return (first > 0 or second > 0) and char(first * 16 + second) or ''
end

-- How a record is packed whose head, with its size before it, takes so many bytes, and how many
-- bytes it takes in all. Where the last two words, or all four, take none, they are left out.
local function packedForm(headSize, first, second, third, fourth)
  local a, b, c, d = first % 8, second % 8, third % 8, fourth % 8
  local length = 7 + headSize + a + b + c + d
  if c + d > 0 then
    return string.format('>I7c%dI%dI%dI%dI%d', headSize, a, b, c, d), length
  elseif a + b > 0 then
    return string.format('>I7c%dI%dI%d', headSize, a, b), length
  end
  return string.format('>I7c%d', headSize), length
end

-- How a string is unpacked that is one record of a state with a label, of four words at most:
-- whether it is that, its form, its length, and the tags.
local function oneRecordForm(raw, label, labelSize)
  local byte = string.byte
  local headSize = byte(raw, 8) or 0
  if headSize < labelSize or headSize > labelSize + 2 or string.sub(raw, 9, 8 + labelSize) ~= label then
    return false, '', -1, 0, 0, 0, 0
  end
  local high, low = byte(raw, 9 + labelSize, 8 + headSize)
  high, low = high or 0, low or 0
  local second, fourth = high % 16, low % 16
  local first, third = (high - second) / 16, (low - fourth) / 16
  local form, length = packedForm(headSize + 1, first, second, third, fourth)
  local isRead = length == #raw and first < const.TAGS_END and second < const.TAGS_END and third < const.TAGS_END and fourth < const.TAGS_END
  return isRead, form, length, first, second, third, fourth
end
