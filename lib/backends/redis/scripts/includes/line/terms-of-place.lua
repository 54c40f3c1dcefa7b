-- The terms of a place that is granted the lock: see place-of.lua.
--   kind      `r`: reentrant, `f`: fenced, `p`: a permit
--   isCounted the server counts who listens to its channel. If it does not, the place is told
--   lease     for how many ms the lock is granted
--   keep      for how many ms the place is kept
--   permits   n, for a permit
--   reserve   how many tokens to reserve
--   highest   the highest token that its process has seen
--   nonce     of the request, or '' if its process does not begin without asking
local function termsOfPlace(micros, kind, isCounted, lease, keep, permits, reserve, highest, nonce)
  return string.format('l %s %d %d %d %d %d %.0f %.0f %s %s', kind, isCounted and 1 or 0, lease, keep, permits, reserve,
    highest, micros, thisServer(), nonce == '' and NO_NONCE or nonce)
end
