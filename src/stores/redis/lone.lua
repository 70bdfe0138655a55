-- A plain call of one key (see runner.lua) that takes and is allowed: with few functions and tables made for it, because they are most of the
-- work that a lone decision is. Everything else, and whatever fails, is left to the runner, from the start.

if #ARGV == 4 and #KEYS == 1 then
  local key, cost, try = KEYS[1], tonumber(ARGV[4]), redis.pcall
  local time = redis.call('TIME')
  local nowUs = time[1] * 1000000 + time[2]
  local held = try('GET', key)
  -- An error is a table with nothing in its places, and no state is empty.
  if cost > 0 and (not held or #held > 0) then
    local taken, remaining, resetUs, livesUs, isKept = takeOnce(ARGV[2], cost, nowUs, held, 1, held and #held)
    if taken then
      local isWritten = isKept and try('SETRANGE', key, '0', taken) == #taken
      if not isWritten then
        local before = try('SET', key, taken, 'PX', string.format('%d', ceil(livesUs / 1000)), 'GET')
        isWritten = not before or #before > 0
      end
      if isWritten then
        return { nowUs, remaining, resetUs }
      end
    end
  end
end
