-- The tag of a word, n_k, which is 0 before, and the number that is packed in place of the word,
-- s_k. A word that is out of range has no tag: nil. This is no function, because calls take longer
-- than what it does: codec.lua and fast-path.lua have it once for each word, with its number in
-- place of _k.
if s_k == 0 then
  n_k = 0
elseif s_k == untilUs then
  n_k = const.BACK
  s_k = 0
else
  local back = untilUs - s_k
  if back >= 0 and back < const.MAX_BACK and back < s_k then
    n_k = const.BACK
    s_k = back
  end
  if s_k < 16777216 then
    n_k = s_k > 0 and n_k + (s_k < 256 and 1 or s_k < 65536 and 2 or 3) or nil
  else
    n_k = s_k < const.NO_NUMBER and n_k + (s_k < 4294967296 and 4 or s_k < 1099511627776 and 5 or s_k < const.MAX_BACK and 6 or 7) or nil
  end
end
