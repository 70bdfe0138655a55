-- Leaky bucket: the twin of leaky-bucket.ts. State: a bucket whose level is the water. In Redis: a hash of water, part, time and limit.

local leakyBucket = bucketFace()

-- Whoever pours in now acts when the water that is there already has leaked. No water, no delay, even while time stands still.
function leakyBucket.delayUs(rule, s, nowUs)
  if leakyBucket.remaining(rule, s, nowUs) == rule.capacity then
    return 0
  end
  return leakyBucket.resetUs(rule, s, nowUs)
end

-- Its time comes when only its own water is left of what was there.
function leakyBucket.cancel(rule, s, nowUs, cost, ticket)
  return leakyBucket.cancelAbove(cost, rule, s, nowUs, cost, ticket)
end

function leakyBucket.encode(rule, s)
  return {
    'water', string.format('%.0f', s[1]),
    'part', string.format('%.0f', s[2]),
    'time', string.format('%.0f', s[3]),
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
  return { water, part, time }, fields.limit
end

return leakyBucket
