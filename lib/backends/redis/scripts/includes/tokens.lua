-- Fencing tokens from a hybrid logical clock that is kept under a key: each is greater than the one before it, than the
-- server's time in µs, and than the highest that the caller has ever seen (this server may have lost its data).
local nextToken, reserved

-- Opens the clock for at most `draws` acquisitions, and sets `reserve` tokens aside with each. But the clock never leads TIME by
-- more than a second, because what it leads by is what a data loss could repeat. `%.0f`, because Lua itself writes 1.76e+15.
local function openClock(key, seen, reserve, draws)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local function set(first, command)
    nextToken, reserved = first, 0
    if reserve > 0 then
      reserved = math.max(0, math.min(reserve, math.floor((now + 1000001 - first) / draws) - 1))
    end
    return redis.call(command, key, string.format('%.0f', first + draws * (1 + reserved) - 1))
  end
  -- Most often the clock is behind TIME, and one command is enough.
  local last = tonumber(set(now > seen and now or seen + 1, 'GETSET') or 0)
  if last >= nextToken then
    set(last + 1, 'SET')
  end
end

local function drawToken()
  local token = nextToken
  nextToken = token + 1 + reserved
  return token
end
