-- A leaky bucket in a hash: how full it was, and when.
-- KEYS[1]: the key. ARGV: capacity, us for one to leak. Answers allowed, remaining, retry after
-- (us), reset after (us).
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local capacity, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local state = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(state[1]) or 0, tonumber(state[2]) or now
level = math.max(0, level - (now - at) / interval)
if level + 1 > capacity then
  return {0, 0, math.ceil((level + 1 - capacity) * interval), math.ceil(level * interval)}
end
level = level + 1
local empty = math.ceil(level * interval)
redis.call('HSET', KEYS[1], 'level', level, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(empty / 1000))
return {1, math.floor(capacity - level), 0, empty}
