-- Fencing tokens from a hybrid logical clock that is kept under a key: each is greater than the one before it, than the
-- server's time in µs, and than the highest that the caller has ever seen (this server may have lost its data).
local nextToken, reserved

-- Opens the clock for at most `draws` acquisitions, and sets `reserve` tokens aside with each. But the clock never leads TIME by
-- more than a second, because what it leads by is what a data loss could repeat. `%.0f`, because Lua itself writes 1.76e+15.
local function openClock(key, seen, reserve, draws)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local first = now > seen and now or seen + 1
  local last = tonumber(redis.call('GETSET', key, string.format('%.0f', first + draws - 1)) or 0)
  local behind = last >= first
  if behind then
    first = last + 1
  end
  reserved = 0
  if reserve > 0 then
    reserved = math.max(0, math.min(reserve, math.floor((now + 1000001 - first) / draws) - 1))
  end
  if behind or reserved > 0 then
    redis.call('SET', key, string.format('%.0f', first + draws * (1 + reserved) - 1))
  end
  nextToken = first
end

local function drawToken()
  local token = nextToken
  nextToken = token + 1 + reserved
  return token
end
