--[[
  Acquires fenced locks: re-entrant ones with a token counter each, the one that Redisson's RFencedLock draws from.

  KEYS[2i - 1]  lock
  KEYS[2i]      its token counter

  ARGV[1]       lease time in ms
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       tokens to reserve with each acquisition
  ARGV[3 + i]   owner

  Returns { 0, answer, ... }: { token, reserved, 1 }, { ttl, holder } when busy, or { { error, types of the keys } }.
]]
-- @include each
-- @include tokens
-- @include plain-lock
local lease, seen, reserve = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local function acquire(i)
  local lock, counter, owner = KEYS[2 * i - 1], KEYS[2 * i], ARGV[3 + i]
  local busy = busyPlain(lock, owner)
  if busy then
    return busy
  end
  openClock(counter, seen, reserve, 1)
  takePlain(lock, owner, lease)
  return { drawToken(), reserved, 1 }
end

local answers = { 0 }
for i = 1, #KEYS / 2 do
  answers[1 + i] = each(acquire, i, 2 * i - 1, 2)
end
return answers
