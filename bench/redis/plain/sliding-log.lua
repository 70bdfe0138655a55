-- A sliding log in a sorted set: one member for each admission, with its time as the score.
-- KEYS[1]: the key. ARGV: limit, window in us. Answers allowed, remaining, retry after (us), reset
-- after (us).
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {0, 0, oldest[2] + window - now, window}
end
redis.call('ZADD', KEYS[1], now, string.format('%.0f:%d', now, count))
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return {1, limit - count - 1, 0, window}
