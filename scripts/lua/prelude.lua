-- Functions that generated code may call besides its own. A function of TypeScript that has the
-- name of one of these is not generated: these are written by hand, to do the same.

local max, min, floor, ceil, huge = math.max, math.min, math.floor, math.ceil, math.huge

-- Every algorithm by its type.
local algorithms = {}

-- Numbers of an array, as text: whole ones with all their digits.
local function join(array, between)
  local texts = {}
  for k = 0, array.length - 1 do
    texts[k + 1] = string.format('%.0f', array[k])
  end
  return table.concat(texts, between)
end

-- The figures that a text names.
local function figuresNamed(numbers)
  local figures, length = {}, 0
  for figure in string.gmatch(numbers, '%d+') do
    figures[length] = tonumber(figure)
    length = length + 1
  end
  figures.length = length
  return figures
end

-- The elements from one index to before another, from 0 on.
local function slice(array, from, to)
  local elements = { length = to - from }
  for k = from, to - 1 do
    elements[k - from] = array[k]
  end
  return elements
end

-- Moves so many words of a state; the two places may overlap.
local function moveWords(s, to, from, count)
  if to < from then
    for k = 0, count - 1 do
      s[to + k] = s[from + k]
    end
  else
    for k = count - 1, 0, -1 do
      s[to + k] = s[from + k]
    end
  end
end

-- Sets so many words of a state to 0.
local function clearWords(s, from, count)
  for k = from, from + count - 1 do
    s[k] = 0
  end
end
