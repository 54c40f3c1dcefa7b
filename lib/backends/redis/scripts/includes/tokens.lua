-- @include time

-- Fencing tokens from a hybrid logical clock that is kept under `key`: each is greater than the one before it, than the server's
-- time in µs, and than the highest that the caller has ever seen (`seen`: this server may have lost its data).
-- For each of at most `draws` acquisitions, up to `reserve` tokens beside its own are set aside; but the clock never leads
-- TIME by more than a second, because what it leads by is what a data loss could repeat.
local function openClock(key, seen, reserve, draws)
  local now = micros()
  local last = math.max(tonumber(redis.call('GET', key) or 0), seen, now - 1)
  local room = math.floor((now + 1000000 - last) / draws) - 1
  return { key = key, last = last, reserved = math.max(0, math.min(reserve, room)) }
end

local function drawToken(clock)
  local token = clock.last + 1
  clock.last = token + clock.reserved
  return token
end

-- `%.0f`, because Lua itself writes 1.76e+15.
local function saveClock(clock)
  redis.call('SET', clock.key, string.format('%.0f', clock.last))
end
