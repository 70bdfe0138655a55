-- Sections: what the named limits of one key hold, where it is a string, stands in one string under one key of Redis, so that several limits
-- cost one reading and one writing. First the names, then the size of each section in a byte, then the sections:
--
--   burst daily\n  10 20  <10 bytes of gcra> <20 bytes of fixedWindow>
--
-- Who takes from some of them keeps the others. The key lives as long as the one that lives longest.

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
