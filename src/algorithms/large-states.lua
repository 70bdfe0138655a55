-- Large states as bytes (see codec.ts): the words are doubles, all of them, so that each has its
-- place.

-- So many words are written with the head of the record.
const.HEAD_WORDS = 10

-- What a record of a large state begins with: when it is idle, its head, and the first words.
local function beginning(head, s, idleAtUs)
  return idleAtUs < const.NO_NUMBER and pack('>I7Bc0dddddddddd', idleAtUs, #head, head, s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10])
    or foreign('a state has no end')
end

-- The words from one place to another, which are all in the table.
local function doublesIn(s, first, last)
  return pack('>' .. string.rep('d', last - first + 1), unpack(s, first, last))
end

-- The head of the record of a large state that has so many words.
local function largeHead(label, words)
  return label .. string.char((words - words % 65536) / 65536, (words % 65536 - words % 256) / 256, words % 256)
end

-- The record of a large state whose words are all in the table.
local function doublesOf(label, s, words, idleAtUs)
  local pieces = { beginning(largeHead(label, words), s, idleAtUs) }
  for first = const.HEAD_WORDS + 1, words, const.MOST_AT_ONCE do
    pieces[#pieces + 1] = doublesIn(s, first, math.min(first + const.MOST_AT_ONCE - 1, words))
  end
  return table.concat(pieces)
end
