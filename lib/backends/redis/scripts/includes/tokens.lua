-- Fencing tokens come from a hybrid logical clock that is kept under a key. Each token is greater than the one before
-- it, than the server's time in µs, and than the highest token that the caller has ever seen (this server may have lost
-- its data). `upcoming` is the next token (nil: none is reserved yet). `reserved` is how many more tokens each
-- acquisition gets.
local upcoming, reserved

-- Reserved tokens may set the clock ahead of TIME by this much, in µs. After a loss of data, the tokens by which the
-- clock was ahead could be issued again. So a clock that does not exist starts further ahead.
local MAX_LEAD = 100000
local INITIAL_LEAD = 150000

-- Sets the clock so that `count` acquisitions get their tokens from `first` on, each with up to `reserve` more. If it
-- cannot be written, no token is reserved, because others would get the same ones. Returns the reply of Redis.
local function setClock(command, key, first, reserve, count)
  local more = 0
  if reserve > 0 then
    more = math.max(0, math.min(reserve, math.floor((micros + MAX_LEAD + 1 - first) / count) - 1))
  end
  local reply = redis.call(command, key, string.format('%.0f', first + count * (1 + more) - 1))
  upcoming, reserved = first, more
  return reply
end

-- Reserves the tokens of at most `count` acquisitions. `former` is the previous value of the clock, if it was already
-- set to `micros` (false: the clock did not exist).
local function reserveTokens(key, reserve, count, former)
  local first, last = micros > seen and micros or seen + 1, former
  -- Usually the clock is behind TIME, and one command is enough.
  if last == nil then
    last = setClock('GETSET', key, first, reserve, count)
  end
  if not last then
    setClock('SET', key, math.max(micros + INITIAL_LEAD, seen + 1), reserve, count)
  elseif tonumber(last) >= first then
    setClock('SET', key, last + 1, reserve, count)
  end
end

local function nextToken()
  local token = upcoming
  upcoming = token + 1 + reserved
  return token
end
