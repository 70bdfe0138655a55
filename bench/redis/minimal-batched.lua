-- What minimal.lua decides, for many keys in one call and as fast as can be: one reading of the
-- time, all values by one MGET, two numbers in the answer to each. It shows how far batching can
-- go; it is no limiter, because a key that is asked for twice in a call counts once.
-- KEYS: the keys. ARGV: interval in us, burst. Answers for each key what remains, or -1, and when
-- it is idle again or fits.
local call, ceil, floor, format = redis.call, math.ceil, math.floor, string.format
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local interval, tolerance = tonumber(ARGV[1]), ARGV[1] * ARGV[2]
local tats, answers = call('MGET', unpack(KEYS)), {}
for k = 1, #KEYS do
  local tat = tonumber(tats[k]) or now
  if tat < now then tat = now end
  local us = tat + interval - now
  if us > tolerance then
    answers[2 * k - 1], answers[2 * k] = -1, us - tolerance
  else
    call('SET', KEYS[k], format('%d', now + us), 'PX', format('%d', ceil(us / 1000)))
    answers[2 * k - 1], answers[2 * k] = floor((tolerance - us) / interval), us
  end
end
return answers
