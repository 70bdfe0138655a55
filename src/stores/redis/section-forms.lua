-- The short forms of sections: what most decisions do with them. See sections.lua, and `shortForm` of the algorithms.

-- Of a key that holds sections, for the limits of a run that are in it. What they say goes into the reply behind what is said; `places` says
-- which parts they are. Nothing where one of them is not there yet, or does not fit.
local function sectionForm(names, takes, places, reply)
  local byte, char, sub, concat = string.byte, string.char, string.sub, table.concat
  local list, count = concat(names, ' ') .. '\n', #names
  local listSize, sizes, pieces = #list, {}, { list }

  local function take(k, state, said)
    local taken, remaining, resetUs = takes[k](state)
    local place = said + 2 * places[k]
    reply[place - 1], reply[place] = remaining, resetUs
    return taken, resetUs
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
      local taken, resetUs
      if state then
        taken, resetUs = take(k, state, said)
      end
      if not taken then
        return nil
      end
      states[names[k]] = taken
      longestUs = math.max(longestUs, resetUs)
    end
    return sectionsText(heldNames, states), nil, longestUs
  end

  return function(held, said, key)
    if held and sub(held, 1, listSize) ~= list then
      return takeAmongOthers(held, said, key)
    end
    local state, last, longestUs = false, listSize + count, 0
    for k = 1, count do
      if held then
        local size = byte(held, listSize + k)
        if not size then
          return nil
        end
        state, last = sub(held, last + 1, last + size), last + size
      end
      local taken, resetUs = take(k, state, said)
      if not taken then
        return nil
      end
      pieces[k + 2], sizes[k] = taken, #taken
      if resetUs > longestUs then
        longestUs = resetUs
      end
    end
    if held and last ~= #held then
      return nil
    end
    pieces[2] = char(unpack(sizes))
    return concat(pieces), nil, longestUs
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
      forms[key] = function(held, said)
        local taken, remaining, resetUs = take(held)
        reply[said + 2 * part - 1], reply[said + 2 * part] = remaining, resetUs
        return taken, nil, resetUs
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
