-- What minimal.lua decides, for many keys in one call: how far batching alone can go. It reads the time once.
-- KEYS: the keys. ARGV: interval in us, burst. Answers for each key what minimal.lua answers.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local interval, tolerance = tonumber(ARGV[1]), ARGV[1] * ARGV[2]
local answers = {}
for k, key in ipairs(KEYS) do
  local tat = tonumber(redis.call('GET', key)) or now
  if tat < now then tat = now end
  local new = tat + interval
  if new - now > tolerance then
    answers[k] = {0, 0, new - now - tolerance, tat - now}
  else
    redis.call('SET', key, string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
    answers[k] = {1, math.floor((tolerance - (new - now)) / interval), 0, new - now}
  end
end
return answers
