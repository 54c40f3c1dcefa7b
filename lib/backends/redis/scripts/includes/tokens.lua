-- @include time

-- Fencing tokens from a hybrid logical clock that is kept under a key: each is greater than the one before it, than the
-- server's time in µs, and than the highest that the caller has ever seen (this server may have lost its data).
local nextToken, reserved

-- `%.0f`, because Lua itself writes 1.76e+15.
local function setClock(command, key, last)
  return redis.call(command, key, string.format('%.0f', last))
end

-- Opens the clock for at most `draws` acquisitions, and sets `reserve` tokens aside with each. But the clock never leads TIME by
-- more than a second, because what it leads by is what a data loss could repeat.
local function openClock(key, seen, reserve, draws)
  local now = micros()
  local first = math.max(now, seen + 1)
  local last = tonumber(setClock('GETSET', key, first + draws - 1) or 0)
  local behind = last >= first
  if behind then
    first = last + 1
  end
  reserved = reserve == 0 and 0 or math.max(0, math.min(reserve, math.floor((now + 1000001 - first) / draws) - 1))
  if behind or reserved > 0 then
    setClock('SET', key, first + draws * (1 + reserved) - 1)
  end
  nextToken = first
end

local function drawToken()
  local token = nextToken
  nextToken = token + 1 + reserved
  return token
end
