-- A token bucket in a hash: how many tokens there were, and when.
-- KEYS[1]: the key. ARGV: capacity, us for one token. Answers allowed, remaining, retry after (us),
-- reset after (us).
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local capacity, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(state[1]) or capacity, tonumber(state[2]) or now
tokens = math.min(capacity, tokens + (now - at) / interval)
if tokens < 1 then
  return {0, 0, math.ceil((1 - tokens) * interval), math.ceil((capacity - tokens) * interval)}
end
tokens = tokens - 1
local full = math.ceil((capacity - tokens) * interval)
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(full / 1000))
return {1, math.floor(tokens), 0, full}
