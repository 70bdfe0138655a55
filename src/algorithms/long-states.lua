-- Long states as bytes (see codec.ts): the words are doubles, all of them, so that each has its place.

-- So many words are written with the head of the record.
local HEAD_WORDS, HEAD_FORM = 8, '>I7Bc0dddddddd'

local function longHead(label, s, words, idleAtUs)
  if not (idleAtUs < NO_NUMBER) then
    foreign('a state has no end')
  end
  local head = label .. char(floor(words / 65536), floor(words / 256) % 256, words % 256)
  return pack(HEAD_FORM, idleAtUs, #head, head, s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8])
end

-- The words from one place to another, which are all in the table.
local function doublesIn(s, first, last)
  return pack('>' .. rep('d', last - first + 1), unpack(s, first, last))
end

-- The record of a state whose words are all in the table.
local function doublesOf(label, s, words, idleAtUs)
  local pieces = { longHead(label, s, words, idleAtUs) }
  for first = HEAD_WORDS + 1, words, MOST_AT_ONCE do
    pieces[#pieces + 1] = doublesIn(s, first, min(first + MOST_AT_ONCE - 1, words))
  end
  return table.concat(pieces)
end
