-- The terms of a place that gets a token with the lock: `g`, a nonce, how many tokens to reserve, the highest token that
-- its process has seen, the clock of the tokens, `f` if the lock is fenced, the time in µs, and the server.
local function termsOfGrant(nonce, reserve, highest, clock, kind)
  return string.format('g %s %d %s %s %s %.0f %s', nonce, reserve, highest, clock, kind, micros, thisServer())
end
