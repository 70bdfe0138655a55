-- Sections: what the named limits of one key hold, where it is a string, stands in one string under one key of Redis, so that several limits
-- cost one reading and one writing. First the names, then the size of each section in a byte, then the sections:
--
--   burst daily\n  10 52  <10 bytes of gcra> <52 characters of fixedWindow>
--
-- Who takes from some of them keeps the others. The key lives as long as the one that lives longest.

-- The short form of a key that holds sections, for the limits of a run that are in it: see `shortForm` of the algorithms. Nothing where it does
-- not hold just these, in this order. What they say goes into the reply behind what is said; `places` says which parts they are.
local function sectionForm(names, takes, places, reply)
  local byte, char, sub, concat = string.byte, string.char, string.sub, table.concat
  local list, count = concat(names, ' ') .. '\n', #names
  local listSize, sizes, pieces = #list, {}, { list }
  return function(held, said)
    if held and sub(held, 1, listSize) ~= list then
      return nil
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
      local taken, remaining, resetUs = takes[k](state)
      if not taken then
        return nil
      end
      pieces[k + 2], sizes[k] = taken, #taken
      if resetUs > longestUs then
        longestUs = resetUs
      end
      local place = said + 2 * places[k]
      reply[place - 1], reply[place] = remaining, resetUs
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

-- The long way.

-- The names in order, and the states by name; nothing for what is no list of sections.
local function sectionsIn(text)
  local list = string.match(text, '^([%w][%w._ -]*)\n')
  local names, states = {}, {}
  for name in string.gmatch(list or '', '%S+') do
    names[#names + 1] = name
  end
  local last = #(list or '') + 1 + #names
  for k, name in ipairs(names) do
    local size = string.byte(text, #list + 1 + k)
    if not size or states[name] then
      return nil
    end
    states[name], last = string.sub(text, last + 1, last + size), last + size
  end
  -- What is ours reads back as it was written.
  if last ~= #text or table.concat(names, ' ') ~= list then
    return nil
  end
  return names, states
end

local function sectionsText(names, states)
  local sizes, pieces = {}, {}
  for k, name in ipairs(names) do
    sizes[k], pieces[k] = #states[name], states[name]
  end
  return table.concat(names, ' ') .. '\n' .. string.char(unpack(sizes)) .. table.concat(pieces)
end
