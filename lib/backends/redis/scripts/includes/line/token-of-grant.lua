-- See terms-of-grant.lua. A place without such terms gets no token.
local TERMS_OF_GRANT = '^g (%S+) (%d+) (%d+) (%S+) (%l) (%d+) (%S+)$'

-- Takes the token of a lock that is now granted to a place with these terms. Returns what the message says about it: the
-- nonce, the token, how many more are reserved, and how many ms ago the place got its terms, or '' without a token. The
-- clocks of two servers tell nothing about that.
local function tokenOfGrant(lock, placeTerms)
  local nonce, reserve, highest, clock, kind, since, server = string.match(placeTerms or '', TERMS_OF_GRANT)
  if server ~= thisServer() then
    return ''
  end
  local time = redis.call('TIME')
  micros, seen = time[1] * 1000000 + time[2], tonumber(highest)
  -- The lock is granted even if the user may not write the clock. The process then asks for its token.
  local isTaken = pcall(function()
    if kind == 'f' then
      reserveFencedTokens(prefixed('redisson_lock_token', lock), clock, tonumber(reserve))
    else
      reserveTokens(clock, tonumber(reserve), 1)
    end
  end)
  local after = math.floor((micros - since) / 1000)
  return isTaken and after >= 0 and string.format(' %s %.0f %d %d', nonce, nextToken(), reserved, after) or ''
end
