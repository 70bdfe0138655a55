-- A fixed window as most people write it: a counter that expires with its window, which begins with
-- the first call.
-- KEYS[1]: the key. ARGV: limit, window in ms. Answers allowed, remaining, retry after (us), reset
-- after (us).
local limit = tonumber(ARGV[1])
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
local left = redis.call('PTTL', KEYS[1]) * 1000
if count > limit then return {0, 0, left, left} end
return {1, limit - count, 0, left}
