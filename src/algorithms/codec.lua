-- States as bytes: the twin of codec.ts, where the layout and the reasons are.
--
-- Most of what a record says is the same for many keys, so it is worked out once for a script call: what a head says, what tags say, which
-- head a rule's words need.

local pack, unpackBytes, byte, char, sub, rep = struct.pack, struct.unpack, string.byte, string.char, string.sub, string.rep

local NO_NUMBER = 9007199254740992
local MAX_BACK = 281474976710656
local LEAD, LONG_TAGS, BACK, MINUS_ONE = 4, 6, 8, 15
-- How numbers of so many bytes are packed.
local FORM = { [0] = '', 'I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7' }
-- A call takes no more values than fit Lua's stack.
local MOST_AT_ONCE = 4000

-- By label, by head, and by tags.
local rules, shapes, plans = {}, {}, {}
-- The numbers of the record that is being written.
local numbers = {}

-- Bytes that we did not write.
local function foreign(what)
  error({ what = what }, 0)
end

-- The rule that a label names. `isKnown`: the caller brings it, so its figures need no checks.
local function ruleOf(label, isKnown)
  local format, nameSize = byte(label, 1, 2)
  local algorithm = algorithms[FORMATS[format]]
  local figures, count, number, unit = {}, 0, 0, 1
  for place = 4 + nameSize, #label do
    local digit = byte(label, place)
    number, unit = number + digit % 64 * unit, unit * 64
    if digit < 64 then
      local zeros = number % 8
      figures[count] = (number - zeros) / 8 * 10 ^ zeros
      count, number, unit = count + 1, 0, 1
      if not (isKnown or figures[count - 1] <= MAX_FIGURE) then
        foreign('a figure is out of range')
      end
    end
  end
  figures.length = count
  if not isKnown and (count ~= FIGURES[format] or unit > 1) then
    foreign('the figures are not those of a ' .. FORMATS[format])
  end
  local rule = algorithm.ruleOf(figures)
  local capacity, windowUs = rule.capacity, rule.windowUs
  if not isKnown and not (capacity >= 1 and capacity <= MAX_PERMITS and windowUs >= 1 and windowUs <= MAX_FILL_US and rule.words <= MAX_WORDS) then
    foreign('the figures ' .. rule.numbers .. ' are no limit of the type ' .. FORMATS[format])
  end
  rule.label, rule.heads = label, {}
  rules[label] = rule
  return rule
end

local function sizeOf(tag)
  return tag == MINUS_ONE and 0 or tag % BACK
end

-- How so many words are packed that two tags take in turn.
local function behindFormat(even, odd, count)
  local first, second = FORM[sizeOf(even)], FORM[sizeOf(odd)]
  return rep(first .. second, floor(count / 2)) .. (count % 2 == 1 and first or '')
end

-- What tags say: the tags of the first words from 0 on, how many those are and how they are unpacked, how many words are behind them, the
-- two tags that those have in turn, and how many bytes all words take.
local function planOf(tags)
  local size = #tags
  local plan = { lead = min(size * 2, LEAD), behind = 0 }
  if size > 2 and size ~= LONG_TAGS then
    foreign(size .. ' bytes are no tags')
  end
  local format, total = '>', 0
  for k = 0, plan.lead - 1 do
    local pair = byte(tags, floor(k / 2) + 1)
    local tag = k % 2 == 0 and floor(pair / 16) or pair % 16
    plan[k], format, total = tag, format .. FORM[sizeOf(tag)], total + sizeOf(tag)
  end
  plan.format, plan.leadSize = format, total
  if size == LONG_TAGS then
    local pair, high, middle, low = byte(tags, 3, 6)
    local even, odd, behind = floor(pair / 16), pair % 16, high * 65536 + middle * 256 + low
    plan.even, plan.odd, plan.behind = even, odd, behind
    total = total + ceil(behind / 2) * sizeOf(even) + floor(behind / 2) * sizeOf(odd)
    plan.behindFormat = '>' .. behindFormat(even, odd, min(behind, MOST_AT_ONCE))
  end
  plan.size = total
  plan.words = plan.lead + plan.behind
  -- The last of an odd number has no other beside it in its byte.
  if plan.behind == 0 and plan[plan.lead - 1] == 0 then
    plan.words = plan.words - 1
  end
  plans[tags] = plan
  return plan
end

-- What a head says: the format, the name of the limit, the label, and the plan of the words.
local function shapeOf(head)
  local format, nameSize = byte(head, 1, 2)
  local figuresSize = nameSize and byte(head, 3 + nameSize)
  local labelSize = figuresSize and 3 + nameSize + figuresSize
  if not labelSize or labelSize > #head then
    foreign('the head of a record is too short')
  end
  local tags = sub(head, labelSize + 1)
  local shape = { format = format, name = sub(head, 3, 2 + nameSize), label = sub(head, 1, labelSize), plan = plans[tags] or planOf(tags) }
  shapes[head] = shape
  return shape
end

-- The value of a word: its tag says how it was written, and `number` is what its bytes say (0 for a tag without bytes).
local function wordOf(tag, number, idleAtUs)
  if tag == MINUS_ONE then
    return -1
  elseif tag % BACK == 0 then
    number = 0
  end
  return tag < BACK and number or idleAtUs - number
end

-- Puts the words behind the fourth into `s`, as many at once as may be. `at`: where their bytes begin.
local function readBehind(plan, raw, at, idleAtUs, s)
  local even, odd, last = plan.even, plan.odd, plan.words - 1
  local hasEven, hasOdd = sizeOf(even) > 0, sizeOf(odd) > 0
  for first = LEAD, last, MOST_AT_ONCE do
    local count = min(last - first + 1, MOST_AT_ONCE)
    -- The last piece of many is shorter.
    local isWhole = count == MOST_AT_ONCE or plan.behind < MOST_AT_ONCE
    local format = isWhole and plan.behindFormat or '>' .. behindFormat(even, odd, count)
    local found, next = { unpackBytes(format, raw, at) }, 1
    for k = first, first + count - 1, 2 do
      s[k] = even > 0 and even < BACK and found[next] or wordOf(even, found[next], idleAtUs)
      if hasEven then
        next = next + 1
      end
      s[k + 1] = odd > 0 and odd < BACK and found[next] or wordOf(odd, found[next], idleAtUs)
      if hasOdd then
        next = next + 1
      end
    end
    at = found[#found]
  end
end

-- Puts the words of a record into `s`. `at`: where their bytes begin. The script errs where they end too early.
local function readWords(plan, raw, at, idleAtUs, s)
  -- Each number is taken from the first place, and the others move up.
  local a, b, c, d = unpackBytes(plan.format, raw, at)
  for k = 0, plan.lead - 1 do
    local tag = plan[k]
    if tag == 0 then
      s[k] = 0
    elseif tag == BACK then
      s[k] = idleAtUs
    elseif tag == MINUS_ONE then
      s[k] = -1
    else
      s[k] = tag < BACK and a or idleAtUs - a
      a, b, c = b, c, d
    end
  end
  if plan.behind > 0 then
    readBehind(plan, raw, at + plan.leadSize, idleAtUs, s)
  end
end

local function bytesFor(number)
  return number < 256 and (number > 0 and 1 or 0)
    or number < 65536 and 2
    or number < 16777216 and 3
    or number < 4294967296 and 4
    or number < 1099511627776 and 5
    or number < 281474976710656 and 6
    or number < NO_NUMBER and 7
    or foreign('a word is out of range')
end

-- The tag that fits all words from the least to the most.
local function tagOf(least, most, idleAtUs)
  local back = idleAtUs - least
  if idleAtUs >= most and back < MAX_BACK and (least < 0 or back < most) then
    return least == -1 and most == -1 and MINUS_ONE or BACK + bytesFor(back)
  elseif least == -1 and most == -1 then
    return MINUS_ONE
  end
  return least >= 0 and bytesFor(most) or foreign('a word is out of range')
end

-- The tag of every second word from a place on.
local function turnTagOf(s, from, count, idleAtUs)
  if from >= count then
    return 0
  end
  local least, most = s[from], s[from]
  for k = from + 2, count - 1, 2 do
    local word = s[k]
    if word < least then
      least = word
    elseif word > most then
      most = word
    end
  end
  return tagOf(least, most, idleAtUs)
end

-- Notes the numbers of the words from one place to before another, behind those that are noted. Says how many there are then.
local function noteTurns(s, from, to, even, odd, idleAtUs, used)
  local hasEven, hasOdd = sizeOf(even) > 0, sizeOf(odd) > 0
  for k = from, to - 1, 2 do
    if hasEven then
      used = used + 1
      numbers[used] = even < BACK and s[k] or idleAtUs - s[k]
    end
    if hasOdd and k + 1 < to then
      used = used + 1
      numbers[used] = odd < BACK and s[k + 1] or idleAtUs - s[k + 1]
    end
  end
  return used
end

-- The head of a record with its size before it, and how the record is packed: the words behind the fourth only if they are few.
local function headOf(rule, key, lead, leadTags, even, odd, behind)
  local tags = lead == 0 and '' or lead == 2 and char(leadTags) or char(floor(leadTags / 256), leadTags % 256)
  local format = '>I7c0' .. sub((plans[tags] or planOf(tags)).format, 2)
  if behind > 0 then
    tags = tags .. char(even * 16 + odd, floor(behind / 65536), floor(behind / 256) % 256, behind % 256)
    format = format .. (behind <= MOST_AT_ONCE and behindFormat(even, odd, behind) or '')
  end
  local head = rule.label .. tags
  local made = { head = char(#head) .. head, format = format }
  rule.heads[key] = made
  return made
end

-- The record of the state in `s`, which has so many words at most and is idle at a time.
local function recordOf(rule, s, most, idleAtUs)
  local count = most
  while count > 0 and s[count - 1] == 0 do
    count = count - 1
  end
  if not (idleAtUs < NO_NUMBER) then
    foreign('a state has no end')
  end
  local lead = count >= 3 and LEAD or count > 0 and 2 or 0
  local leadTags, used = 0, 0
  for k = 0, lead - 1 do
    local word, tag = k < count and s[k] or 0, MINUS_ONE
    if word ~= -1 then
      local back = idleAtUs - word
      tag = 0
      if back >= 0 and back < MAX_BACK and (back < word or word < 0) then
        word, tag = back, BACK
      end
      if word ~= 0 then
        used = used + 1
        numbers[used] = word
        tag = tag + (word > 0 and bytesFor(word) or foreign('a word is out of range'))
      end
    end
    leadTags = leadTags * 16 + tag
  end
  -- Of all tags and of how many words there are.
  local key = leadTags * 8 + lead
  if count <= LEAD then
    local made = rule.heads[key] or headOf(rule, key, lead, leadTags, 0, 0, 0)
    return pack(made.format, idleAtUs, made.head, numbers[1], numbers[2], numbers[3], numbers[4])
  end
  local even, odd, behind = turnTagOf(s, LEAD, count, idleAtUs), turnTagOf(s, LEAD + 1, count, idleAtUs), count - LEAD
  key = ((key * 16 + even) * 16 + odd) * 16777216 + behind
  local made = rule.heads[key] or headOf(rule, key, lead, leadTags, even, odd, behind)
  if behind <= MOST_AT_ONCE then
    used = noteTurns(s, LEAD, count, even, odd, idleAtUs, used)
    return pack(made.format, idleAtUs, made.head, unpack(numbers, 1, used))
  end
  local pieces = { pack(made.format, idleAtUs, made.head, numbers[1], numbers[2], numbers[3], numbers[4]) }
  for first = LEAD, count - 1, MOST_AT_ONCE do
    local to = min(first + MOST_AT_ONCE, count)
    used = noteTurns(s, first, to, even, odd, idleAtUs, 0)
    pieces[#pieces + 1] = pack('>' .. behindFormat(even, odd, to - first), unpack(numbers, 1, used))
  end
  return table.concat(pieces)
end
