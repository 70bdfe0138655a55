-- A sliding window in a hash: one count for each slot. The oldest counts by the part of it that the
-- window still covers.
-- KEYS[1]: the key. ARGV: limit, window in us, slots. Answers allowed, remaining, retry after (us),
-- reset after (us).
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local limit, window, slots = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local width = window / slots
local slot = math.floor(now / width)
local intoSlot = now - slot * width
local used, gone = 0, {}
local counts = redis.call('HGETALL', KEYS[1])
for k = 1, #counts, 2 do
  local age, count = slot - counts[k], counts[k + 1]
  if age < slots then
    used = used + count
  elseif age == slots then
    used = used + count * (1 - intoSlot / width)
  else
    gone[#gone + 1] = counts[k]
  end
end
local reset = window + width - intoSlot
if used + 1 > limit then return {0, 0, math.ceil(width - intoSlot), math.ceil(reset)} end
if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
redis.call('HINCRBY', KEYS[1], slot, 1)
redis.call('PEXPIRE', KEYS[1], math.ceil(reset / 1000))
return {1, math.floor(limit - used - 1), 0, math.ceil(reset)}
