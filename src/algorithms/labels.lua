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

-- The rule that a label names. `isKnown`: the caller brings it, so its figures need no checks.
local function ruleOf(label, isKnown)
  local format = string.byte(label, 1)
  local figures, isWhole = figuresOf(label)
  if not isKnown and (figures.length ~= FIGURES[format] or not isWhole) then
    foreign('the figures are not those of a ' .. FORMATS[format])
  end
  for k = 0, isKnown and -1 or figures.length - 1 do
    if not (figures[k] <= const.MAX_FIGURE) then
      foreign('a figure is out of range')
    end
  end
  local rule = algorithmOf(format).ruleOf(figures)
  local capacity, windowUs = rule.capacity, rule.windowUs
  if not isKnown and not (capacity >= 1 and capacity <= const.MAX_PERMITS and windowUs >= 1 and windowUs <= const.MAX_FILL_US and rule.words <= const.MAX_WORDS) then
    foreign('the figures ' .. rule.numbers .. ' are no limit of the type ' .. FORMATS[format])
  end
  rule.label, rule.forms, rule.heads, rule.neededWords = label, {}, {}, rule.algorithm.neededWords
  rules[label] = rule
  return rule
end
