-- Reserves the tokens of one acquisition from a fenced lock's counter. A counter that does not exist starts above
-- the clock of all locks.
local function reserveFencedTokens(counter, clock, reserve)
  if redis.call('EXISTS', counter) == 1 then
    return reserveTokens(counter, reserve, 1)
  end
  reserveTokens(clock, 0, 1)
  setClock('SET', counter, upcoming + 1, reserve, 1)
end
