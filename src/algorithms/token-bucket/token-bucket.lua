-- Token bucket: the twin of token-bucket.ts. State: a bucket whose level is the missing tokens.
-- In Redis: a hash of tokens, part, time and limit.

local tokenBucket = bucketFace()

function tokenBucket.encode(rule, s)
  local used, part, atUs = tokenBucket.read(rule, s)
  local tokens = rule.capacity - used
  if part > 0 then
    tokens, part = tokens - 1, rule.periodUs - part
  end
  return {
    'tokens', string.format('%.0f', tokens),
    'part', string.format('%.0f', part),
    'time', string.format('%.0f', atUs),
    'limit', rule.numbers,
  }
end

-- The state and the numbers it was written under; nothing at all for what this algorithm did not write.
-- Matched first, because `tonumber` alone would also read '1.5', '0x10' and 'nan'.
function tokenBucket.decode(fields)
  local tokens = tonumber(string.match(fields.tokens or '', '^-?%d+$'))
  local part = tonumber(string.match(fields.part or '', '^%d+$'))
  local time = tonumber(string.match(fields.time or '', '^%d+$'))
  local capacity, periodUs = string.match(fields.limit or '', '^(%d+) %d+ (%d+)$')
  if not (tokens and part and time and capacity) then
    return nil
  end
  if part > 0 then
    return tokenBucket.written(fields.limit, capacity - tokens - 1, periodUs - part, time), fields.limit
  end
  return tokenBucket.written(fields.limit, capacity - tokens, 0, time), fields.limit
end

return tokenBucket
