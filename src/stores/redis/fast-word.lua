-- A word, s_k, by its tag, t_k: as it was unpacked, or counted back from when the state is idle.
-- One that takes no bytes was not unpacked. fast-path.lua has this once for each word, with its
-- number in place of _k.
if t_k < const.WIDEST then
  s_k = t_k > 0 and s_k or 0
elseif t_k < const.BACK then
  isUsual = isUsual and s_k < const.NO_NUMBER
elseif t_k == const.BACK then
  s_k = idleAtUs
else
  s_k = idleAtUs - s_k
  isUsual = isUsual and s_k >= 0
end
