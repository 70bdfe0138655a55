-- A word, s[_k], by its tag: as it was unpacked, or counted back from when the state is idle.
-- codec.lua has this once for each of the first four words, with its number in place of _k.
local t_k = shape[const.TAGS + _k]
if t_k >= const.WIDEST then
  s[_k] = wordOf(t_k, s[_k], idleAtUs)
end
