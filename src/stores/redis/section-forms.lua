-- The short forms of sections: what most decisions do with them. See sections.lua, and `shortForm` of the algorithms.

-- Of a key that holds sections, for the limits of a run that are in it. What they say goes into the reply behind what is said; `places` says
-- which parts they are. Nothing where one of them is not there yet, or does not fit.
local function sectionForm(names, takes, places, reply)
  local byte, char, sub, concat = string.byte, string.char, string.sub, table.concat
  local list, count = concat(names, ' ') .. '\n', #names
  local listSize, pieces, sizes = #list, { nil }, { nil }
  -- How the last key began, with the sizes, and where each of its sections ended: those of other keys are mostly as long.
  local head, headSize, ends = '', listSize + count, { nil }

  -- Says whether the sections are where the sizes say.
  local function measure(held)
    local last = headSize
    for k = 1, count do
      last = last + (byte(held, listSize + k) or 0)
      ends[k] = last
    end
    head = sub(held, 1, headSize)
    return last == #held
  end

  -- From a key that others are in too, or in another order. They stay as they are, and so does the time to live if theirs is longer.
  local function takeAmongOthers(held, said, key)
    local heldNames, states = sectionsIn(held)
    local leftMs = heldNames and try('PTTL', key)
    if type(leftMs) ~= 'number' or leftMs < 0 then
      return nil
    end
    local longestUs = leftMs * 1000
    for k = 1, count do
      local state = states[names[k]]
      local taken, remaining, resetUs, livesUs
      if state then
        taken, remaining, resetUs, livesUs = takes[k](state, 1, #state)
      end
      if not taken then
        return nil
      end
      local place = said + 2 * places[k]
      reply[place - 1], reply[place], states[names[k]] = remaining, resetUs, taken
      longestUs = math.max(longestUs, livesUs)
    end
    return sectionsText(heldNames, states), nil, nil, longestUs, false
  end

  return function(held, _from, to, said, key)
    if held and (to ~= ends[count] or sub(held, 1, headSize) ~= head) then
      if sub(held, 1, listSize) ~= list then
        return takeAmongOthers(held, said, key)
      elseif not measure(held) then
        return nil
      end
    end
    local last, longestUs, areKept = headSize, 0, held
    for k = 1, count do
      local taken, remaining, resetUs, livesUs, isKept = takes[k](held, last + 1, ends[k])
      if not taken then
        return nil
      end
      local place = said + 2 * places[k]
      reply[place - 1], reply[place], pieces[k + 1], last = remaining, resetUs, taken, ends[k] or 0
      if livesUs > longestUs then
        longestUs = livesUs
      end
      areKept = areKept and isKept
    end
    if areKept then
      pieces[1] = head
    else
      for k = 1, count do
        sizes[k] = #pieces[k + 1]
      end
      pieces[1] = list .. char(unpack(sizes))
    end
    -- Two are the most usual, and joined in one step.
    local text = count == 2 and pieces[1] .. pieces[2] .. pieces[3] or concat(pieces)
    return text, nil, nil, longestUs, areKept
  end
end

-- The short forms of a run in which some limits share keys, by key; nothing where one has none.
local function sectionForms(partsAt, partSize, parts, nowUs, reply)
  local keys, forms = {}, {}
  for part = 1, parts do
    local at = partsAt + (part - 1) * partSize
    local kind, key, name = string.match(ARGV[at], '^(%a+) (%d+) (.*)$')
    local shortForm, cost = shortForms[kind], tonumber(ARGV[at + 3])
    local take = shortForm and cost > 0 and shortForm(ARGV[at + 1], cost, nowUs)
    if not take then
      return nil
    end
    key = tonumber(key)
    if name == '' then
      forms[key] = function(held, from, to, said)
        local taken, remaining, resetUs, livesUs, isKept = take(held, from, to)
        reply[said + 2 * part - 1], reply[said + 2 * part] = remaining, resetUs
        return taken, nil, nil, livesUs, isKept
      end
    else
      local held = keys[key] or { names = {}, takes = {}, places = {} }
      local k = #held.names + 1
      held.names[k], held.takes[k], held.places[k] = name, take, part
      keys[key] = held
    end
  end
  for key, held in pairs(keys) do
    forms[key] = sectionForm(held.names, held.takes, held.places, reply)
  end
  return forms
end
