-- Numbers in as few bytes as can be, for states that are strings. `packedNumbers` is the twin of that in packed.ts, where the reasons are.

-- How many bytes a whole number needs as it is.
local function bytesFor(number)
  local size, above = 1, 256
  while number >= above do
    size, above = size + 1, above * 256
  end
  return size
end

-- The long way.

-- A figure of a rule: six bits to a byte, the lowest first, and the seventh says that more follow.
local function packed(figure)
  local digits, zeros = figure, 0
  while digits > 0 and digits % 10 == 0 and zeros < 7 do
    digits, zeros = digits / 10, zeros + 1
  end
  local left, bytes = digits * 8 + zeros, ''
  while left >= 64 do
    bytes = bytes .. string.char(64 + left % 64)
    left = floor(left / 64)
  end
  return bytes .. string.char(left)
end

-- The figure that begins at a place, and the place behind it; nothing if the bytes end before it does.
local function unpacked(bytes, place)
  local number, unit = 0, 1
  local byte = string.byte(bytes, place)
  while byte and byte >= 64 do
    number, unit, place = number + (byte - 64) * unit, unit * 64, place + 1
    byte = string.byte(bytes, place)
  end
  if not byte then
    return nil
  end
  number = number + byte * unit
  local zeros = number % 8
  return (number - zeros) / 8 * 10 ^ zeros, place + 1
end

-- The numbers of a rule, `100 1 600000`.
local function packedNumbers(numbers)
  local pieces = {}
  for figure in string.gmatch(numbers, '%d+') do
    pieces[#pieces + 1] = packed(tonumber(figure))
  end
  return table.concat(pieces)
end

-- So many figures, which begin at a place, as the numbers of a rule, and the place behind them; nothing unless they stand there as we write them.
local function unpackedNumbers(bytes, first, count)
  -- No state of ours is longer, and others may be of any length.
  if #bytes > 40 then
    return nil
  end
  local figures, place = {}, first
  for k = 1, count do
    local figure
    figure, place = unpacked(bytes, place)
    -- No figure of ours is larger than 366 days are in µs. What is not a number is no less.
    if not figure or not (figure <= 31622400000000) then
      return nil
    end
    figures[k] = string.format('%.0f', figure)
  end
  local numbers = table.concat(figures, ' ')
  if packedNumbers(numbers) ~= string.sub(bytes, first, place - 1) then
    return nil
  end
  return numbers, place
end
