-- Leaky bucket: the twin of leaky-bucket.ts. State: a bucket whose level is the water. In Redis: a hash of water, part, time and limit.

local leakyBucket = bucketFace()

-- Whoever pours in now acts when the water that is there already has leaked. No water, no delay, even while time stands still.
function leakyBucket.delayUs(_rule, s, nowUs)
  local atUs = math.max(s[3], nowUs)
  local leakedInUs = drainedInUs(s, atUs)
  if leakedInUs == 0 then
    return 0
  end
  return leakedInUs + atUs - nowUs
end

-- Its time comes when only its own water is left of what was there.
function leakyBucket.cancel(rule, s, nowUs, cost, ticket)
  return leakyBucket.cancelAhead(rule, s, nowUs, cost, ticket, timeOfCost(rule, cost))
end

function leakyBucket.encode(rule, s)
  local water, part, atUs = leakyBucket.read(rule, s)
  return {
    'water', string.format('%.0f', water),
    'part', string.format('%.0f', part),
    'time', string.format('%.0f', atUs),
    'limit', rule.numbers,
  }
end

function leakyBucket.decode(fields)
  local water = tonumber(string.match(fields.water or '', '^%d+$'))
  local part = tonumber(string.match(fields.part or '', '^%d+$'))
  local time = tonumber(string.match(fields.time or '', '^%d+$'))
  if not (water and part and time and string.match(fields.limit or '', '^%d+ %d+ %d+$')) then
    return nil
  end
  return leakyBucket.written(fields.limit, water, part, time), fields.limit
end

return leakyBucket
