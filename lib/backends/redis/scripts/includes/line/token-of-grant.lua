-- The terms of a place that gets a token with the lock: `g`, a nonce, how many tokens to reserve, the highest token that
-- its process has seen, the clock of the tokens, and `f` if the lock is fenced. A place without terms gets none.
local TERMS_OF_GRANT = '^g (%S+) (%d+) (%d+) (%S+)( ?f?)$'

-- Takes the token of a lock that is now granted to a place with these terms. Returns what the message says about it: the
-- nonce, the token, how many more are reserved, and the time in ms, or '' without a token.
local function tokenOfGrant(lock, placeTerms)
  local nonce, reserve, highest, clock, isFenced = string.match(placeTerms or '', TERMS_OF_GRANT)
  if not nonce then
    return ''
  end
  local time = redis.call('TIME')
  micros, seen = time[1] * 1000000 + time[2], tonumber(highest)
  -- The lock is granted even if the user may not write the clock. The process then asks for its token.
  local isTaken = pcall(function()
    if isFenced == ' f' then
      reserveFencedTokens(prefixed('redisson_lock_token', lock), clock, tonumber(reserve))
    else
      reserveTokens(clock, tonumber(reserve), 1)
    end
  end)
  return isTaken and string.format(' %s %.0f %d %.0f', nonce, nextToken(), reserved, math.floor(micros / 1000)) or ''
end
