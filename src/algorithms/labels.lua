-- The rules that labels name, each made once for a script call.

local rules = {}

-- Makes the functions of an algorithm when they are first needed, where the script does not have
-- all of them. (Tests do.)
local function algorithmOf(format)
  local name = FORMATS[format]
  if not algorithms[name] then
    --[[ALGORITHM]]
  end
  return algorithms[name]
end

-- Whether the figures of a label are spelled as they are written (see codec.ts).
local function isSpelled(label)
  local byte, number, unit = string.byte, 0, 1
  for place = 4 + byte(label, 2), #label do
    local digit = byte(label, place)
    number, unit = number + digit % 64 * unit, unit * 64
    if digit < 64 then
      local zeros = number % 8
      if digit == 0 and unit > 64 or (number - zeros) % 80 == 0 and zeros ~= (number < 8 and 0 or 7) then
        return false
      end
      number, unit = 0, 1
    end
  end
  return true
end

-- The rule that a label names. `isKnown`: the caller brings it, so its figures need no checks.
local function ruleOf(label, isKnown)
  local format = string.byte(label, 1)
  local figures, isWhole = figuresOf(label)
  if not isKnown and (figures.length ~= FIGURES[format] or not isWhole or not isSpelled(label)) then
    foreign('the figures are not those of a ' .. FORMATS[format])
  end
  for k = 0, isKnown and -1 or figures.length - 1 do
    if not (figures[k] <= const.MAX_FIGURE) then
      foreign('a figure is out of range')
    end
  end
  local algorithm = algorithmOf(format)
  if not isKnown and not algorithm.isLimit(figures) then
    foreign('its figures are no limit of the type ' .. FORMATS[format])
  end
  local rule = algorithm.ruleOf(figures)
  rule.isCounted = isCounted(format)
  rule.label, rule.forms, rule.heads, rule.neededWords = label, {}, {}, rule.algorithm.neededWords
  rules[label] = rule
  return rule
end
