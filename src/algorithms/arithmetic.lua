-- Whole-number arithmetic that never rounds, on doubles: the twin of arithmetic.ts, where the reasons are.

local MAX_EXACT = 9007199254740991
-- Looked up once: a script may call them a thousand times.
local floor, ceil = math.floor, math.ceil

-- The long way.

local function divide(product, c)
  local quotient = floor(product / c)
  return quotient, product - quotient * c
end

local function mulDivWide(a, b, c)
  local bWhole, bRest = divide(b, c)
  local quotient, rest, left = 0, 0, a
  local bit = 4503599627370496
  while bit > a do
    bit = bit / 2
  end
  while bit >= 1 do
    quotient = quotient * 2
    if rest >= c - rest then
      rest = rest - (c - rest)
      quotient = quotient + 1
    else
      rest = rest + rest
    end
    if left >= bit then
      left = left - bit
      quotient = quotient + bWhole
      if rest >= c - bRest then
        rest = rest - (c - bRest)
        quotient = quotient + 1
      else
        rest = rest + bRest
      end
    end
    bit = bit / 2
  end
  return quotient, rest
end

-- a x b / c: whole quotient, remainder.
local function mulDiv(a, b, c)
  local product = a * b
  if product <= MAX_EXACT then
    return divide(product, c)
  end
  return mulDivWide(math.min(a, b), math.max(a, b), c)
end

-- (a x b + add) / c: whole quotient, remainder.
local function mulAddDiv(a, b, add, c)
  local whole, rest = mulDiv(a, b, c)
  local extra
  extra, rest = divide(rest + add, c)
  return whole + extra, rest
end

-- (a x b + add) / c, rounded up.
local function mulAddDivUp(a, b, add, c)
  local sum = a * b + add
  if sum <= MAX_EXACT then
    return ceil(sum / c)
  end
  local quotient, rest = mulAddDiv(a, b, add, c)
  if rest == 0 then
    return quotient
  end
  return quotient + 1
end
