-- The tag of a word, nN, which is 0 before, and the number that is packed in place of the word, sN.
-- A word that is out of range has no tag: nil. This is no function, because calls take longer than
-- what it does: it stands wherever a text says TAG, once for each word, with its number in place of
-- N.
if sN == 0 then
  nN = 0
elseif sN == untilUs then
  nN = BACK
  sN = 0
elseif sN == -1 then
  nN = MINUS_ONE
  sN = 0
else
  local back = untilUs - sN
  if back >= 0 and back < MAX_BACK and (back < sN or sN < 0) then
    nN = BACK
    sN = back
  end
  if sN < 16777216 then
    nN = sN > 0 and nN + (sN < 256 and 1 or sN < 65536 and 2 or 3) or nil
  else
    nN = sN < NO_NUMBER and nN + (sN < 4294967296 and 4 or sN < 1099511627776 and 5 or sN < MAX_BACK and 6 or 7) or nil
  end
end
