-- Fencing tokens from a hybrid logical clock that is kept under a key: each is greater than the one before it, than the
-- server's time in µs, and than the highest that the caller has ever seen (this server may have lost its data).
local nextToken, reserved

-- The clock never leads TIME by more than this because of tokens that are reserved: what it leads by is what a data loss could
-- repeat. So a clock that is not there starts further ahead.
local MOST_LEAD = 100000
local FIRST_LEAD = 150000

-- Sets the clock so that `draws` acquisitions can draw from `first` on, each with `reserve` tokens set aside. Gives what Redis answers.
local function setClock(command, key, first, reserve, draws)
  nextToken, reserved = first, 0
  if reserve > 0 then
    reserved = math.max(0, math.min(reserve, math.floor((micros + MOST_LEAD + 1 - first) / draws) - 1))
  end
  return redis.call(command, key, string.format('%.0f', first + draws * (1 + reserved) - 1))
end

-- Opens the clock for at most `draws` acquisitions.
local function openClock(key, reserve, draws)
  -- Most often the clock is behind TIME, and one command is enough.
  local last = setClock('GETSET', key, micros > seen and micros or seen + 1, reserve, draws)
  if not last then
    setClock('SET', key, math.max(micros + FIRST_LEAD, seen + 1), reserve, draws)
  elseif tonumber(last) >= nextToken then
    setClock('SET', key, last + 1, reserve, draws)
  end
end

-- Opens a fenced lock's own counter. One that is not there starts above the clock of all locks.
local function openCounter(counter, clock, reserve)
  if redis.call('EXISTS', counter) == 1 then
    return openClock(counter, reserve, 1)
  end
  openClock(clock, 0, 1)
  setClock('SET', counter, nextToken + 1, reserve, 1)
end

local function drawToken()
  local token = nextToken
  nextToken = token + 1 + reserved
  return token
end
