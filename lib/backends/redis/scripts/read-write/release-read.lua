--[[
  Releases the read side of read/write locks, each for its owner. The last reader wakes a writer, and so
  does a reader that leaves the lock with a shorter lease.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this reader

  ARGV[1]       PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[2]       clock of the fencing tokens of these locks
  ARGV[2 + i]   owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2; also when others still hold the lock), NOT_SERVED (-3) or less,
  { NOT_HELD (-1), server time in ms }, or { { error, types of the keys } }.
]]
-- @includes
local publish = ARGV[1]
-- Which locks' lines may have to be served, by the keys under which their places would be.
local changed, lines = {}, {}

local function release(i)
  local lock, lease, owner = KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 + i]
  if not isReader(lock, owner) then
    return { NOT_HELD, serverTime() }
  end
  local left = redis.call('PTTL', lease)
  redis.call('DEL', lease)
  redis.call('HDEL', lock, owner)
  if redis.call('HGET', lock, 'mode') == 'write' then
    return NOT_PUBLISHED
  end
  local former = redis.call('HLEN', lock) > 1 and redis.call('PTTL', lock)
  -- Another reader is alive and has the longest lease.
  if former and left < former - 1 then
    return NOT_PUBLISHED
  end
  local channel = prefixed('redisson_rwlock', lock)
  if fitToReaders(lock) then
    if becomesShorter(former, redis.call('PTTL', lock)) then
      publishTo(publish, channel, '0')
      changed[#changed + 1], lines[#lines + 1] = i, prefixed('nestjs_redis_lock_turns', lock)
    end
    return NOT_PUBLISHED
  end
  changed[#changed + 1], lines[#lines + 1] = i, prefixed('nestjs_redis_lock_turns', lock)
  return publishTo(publish, channel, '0') or NOT_PUBLISHED
end

local answers = {}
for i = 1, #KEYS / 2 do
  answers[i] = answerOf(release, i, 2 * i - 1, 2)
end
-- Most locks have no line. One command finds that out for all of them, and what serves a line is not even defined.
local lineCount = publish ~= '' and lines[1] and redis.pcall('EXISTS', unpack(lines))
if not lineCount or lineCount == 0 then
  return answers
end

-- @include line/time-of-grant
-- @includes
local isAllowed = type(lineCount) == 'number'
for _, i in ipairs(changed) do
  -- The lock is released even if its line cannot be told.
  if isAllowed then
    pcall(tellLine, KEYS[2 * i - 1], publish, ARGV[2], 0)
  end
  answers[i] = servedOrNot(answers[i], isAllowed)
end
return answers
