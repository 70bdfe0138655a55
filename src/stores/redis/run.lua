-- Reads the states, has them decided, and writes what changed, with a time to live each. Many
-- decisions may come in one call: each is made as if it had come alone, in the order in which they
-- stand.
--
-- KEYS: the keys of the decisions, decision after decision. One key holds the states of all limits
-- that a limiter has for it.
-- ARGV: nowUs ('' for the server's time), 1 if a state may be large and 0 otherwise, then runs of
-- decisions, each either
--       a short one: t (take), c (charge), s (settle), or of what is released g (give) or r (renew), how many decisions, each by one limit, which is the same for all, on a key of its
--       own, its label (see codec.ts); then the cost, which is the same for all, or to settle, give and renew a list of JSON with the cost of each and what it is about: the tokens to renew, as text
--       where there are several; ofUs of all else, and to settle also when the charge would have drained;
--       or any other: the verb (`op aheadUs ofUs`, -1 for none), how many decisions, how many parts and how many keys each has, then for each part:
--       its label, which of the keys it has, its cost, and to `settle`, `renew` and `line` the ticket's numbers and the ticket's words ('' for none).
--       A plain call has nothing but a label and a cost, and c if it charges: each key is a decision, on the server's time.
-- Answers { nowUs, ... } with for each part of each decision: what remains and resetUs, if it was
-- allowed and may be acted on at once; else -1 allowed, -2 limited or -3 impossible, then
-- remaining, retryUs, resetUs, delayUs; where it was entered later than nowUs, -4 and by how much
-- before all that. Behind that stands to `give`, `renew` and `line` what decide.ts says was given.
-- To `settle` that is all there is, or -2 where nothing changed. For `forget` one 0. In place of
-- all that stands the text of an error for a decision that could not be made.
--
-- Redis makes every function and every table of a script anew at each call, and a function the more
-- expensively the more variables around it it uses. So what nearly every call needs stands here,
-- outside of functions: decisions by one limit whose states are short (fast-path.lua, once for each
-- such algorithm), on keys that hold nothing or one state under the same numbers. Everything else
-- (slow-path.lua) is in one function, which uses none of these variables, and makes what it needs
-- when it is called: for decisions by one limit whose states are long (long-path.lua), or for any
-- (general-path.lua). What decides is generated from decide.ts: for the former, blocks in which all
-- is put in place; for the latter see there.

local try, keys, argv, pack, unpackBytes, asText = redis.pcall, KEYS, ARGV, struct.pack, struct.unpack, string.format
-- Numbers below this are written down as text by `%d`, on every server.
const.MOST_AS_TEXT = 2147483648
-- An hour and a millisecond.
const.MOST_STEP_US, const.LEAST_STEP_US = 3600000000, 1000
const.ENTERED_LATER, const.ALLOWED, const.LIMITED, const.IMPOSSIBLE = -4, -1, -2, -3

-- A clock passed in by a test has nothing to do with the server's: a key lives a day at least from
-- when its time to live is set.
local isPlain = #argv < 4
local nowUs, leastTtlMs = not isPlain and tonumber(argv[1]), 86400000
if not nowUs then
  local time = redis.call('TIME')
  nowUs, leastTtlMs = time[1] * 1000000 + time[2], 1
end
-- With room for the answer to a lone decision: tables that grow are made twice.
local reply, size = { nowUs, nil, nil }, 1

-- A key lives until its state is idle, rounded up to a multiple of this: an eighth of the window.
-- So most writes need not set its time to live. A state tells how long its key lives, because it
-- has its numbers in it.
local function stepOf(windowUs)
  local stepUs = windowUs / 8 - windowUs / 8 % 1
  return stepUs < const.LEAST_STEP_US and const.LEAST_STEP_US or stepUs > const.MOST_STEP_US and const.MOST_STEP_US or stepUs
end

-- Adds the answer of one limit in full. Answers how much has been answered then.
local function sayInFull(reply, size, nowUs, outcome, remaining, retryUs, resetUs, delayUs, enteredUs)
  if enteredUs > nowUs then
    reply[size + 1], reply[size + 2] = const.ENTERED_LATER, enteredUs - nowUs
    size = size + 2
  end
  reply[size + 1] = outcome == 'limited' and const.LIMITED or outcome == 'allowed' and const.ALLOWED or const.IMPOSSIBLE
  reply[size + 2], reply[size + 3] = remaining, outcome == 'impossible' and 0 or retryUs
  reply[size + 4], reply[size + 5] = resetUs, delayUs
  return size + 5
end

-- What the keys hold by their place, false for nothing, as far as that was read (MGET finds nothing
-- in a key of another type either), and what this call has found out or written since, by their
-- name. Where states may be large, keys are not read as a whole, but each when it is decided on.
local values, heldBy, isLarge = { nil }, { one = nil }, not isPlain and argv[2] == '1'
for first = 1, #keys > 1 and not isLarge and #keys or 0, const.MOST_AT_ONCE do
  local last = first + const.MOST_AT_ONCE - 1
  local found = try('MGET', unpack(keys, first, last < #keys and last or #keys))
  -- A user who may not call it reads one by one.
  if first == 1 and not found.err then
    values = found
  else
    for k = 1, found.err and 0 or #found do
      values[first + k - 1] = found[k]
    end
  end
end

-- Makes what few calls need: the general path, or the long path. What a function uses of the
-- variables around it is looked for when it is made, unless it belongs to a function further out:
-- hence the function in it.
local function newSlowPath(newSlowPath, isGeneral, nowUs, leastTtlMs, reply, values, heldBy, isLarge, sayInFull, stepOf, figuresOf, leadTags)
  local function newPath()
    --[[SLOW PATH]]
  end
  return newPath()
end

-- Where the next decision has its key, and where the next run begins in ARGV.
local key, at, general, long = 1, 3, nil, nil
while key <= #keys do
  local verb, label = isPlain and (argv[3] or 't') or argv[at], isPlain and argv[1] or argv[at + 2]
  local format = #verb == 1 and string.byte(label)
  if not format then
    general = general or newSlowPath(newSlowPath, true, nowUs, leastTtlMs, reply, values, heldBy, isLarge, sayInFull, stepOf, figuresOf, leadTags)
    key, at, size = general.anyRun(key, at, size)
  --[[SHORT]]
  else
    long = long or newSlowPath(newSlowPath, false, nowUs, leastTtlMs, reply, values, heldBy, isLarge, sayInFull, stepOf, figuresOf, leadTags)
    key, at, size = long(verb, label, key, at, size)
  end
end

-- Where nothing could be decided for one reason, the client should see the error as one: some act
-- on what it says. No answer begins with a text.
local failure = reply[2]
if type(failure) == 'string' then
  local alike = 2
  while reply[alike + 1] == failure do
    alike = alike + 1
  end
  if alike == size then
    return redis.error_reply(failure)
  end
end
return reply
