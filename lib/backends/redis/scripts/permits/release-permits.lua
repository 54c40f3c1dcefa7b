--[[
  Releases locks that n may hold, each for its owner, notifies waiters, and serves the line.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[2]      clock of the fencing tokens of these locks
  ARGV[2 + i]  owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2), NOT_SERVED (-3) or less, { NOT_HELD (-1), server time in ms }, or
  { { error, type of the lock } }. For a single lock without other holders and waiters, returns only the number.
]]
-- @includes
local publish = ARGV[1]
local freed

-- The common case, which has to be fast: one lock with one holder. The key lasts as long as the lease of that holder.
if #KEYS == 1 and redis.pcall('ZCARD', KEYS[1]) == 1 and redis.call('ZREM', KEYS[1], ARGV[3]) == 1 then
  freed = publishTo(publish, prefixed('redisson_lock__channel', KEYS[1]), '0') or NOT_PUBLISHED
  if publish == '' or redis.pcall('EXISTS', prefixed('nestjs_redis_lock_turns', KEYS[1])) == 0 then
    return freed
  end
end

-- @include line/time-of-grant
-- @includes
local now = serverTime()

-- The lock is released even if its line cannot be served.
local function serve(lock, answer)
  local isServed = pcall(serveLine, lock, publish, ARGV[2], math.max(0, answer))
  local isAllowed = isServed or type(redis.pcall('EXISTS', prefixed('nestjs_redis_lock_turns', lock))) == 'number'
  return servedOrNot(answer, isAllowed)
end

local function release(i)
  local lock, owner = KEYS[i], ARGV[2 + i]
  if not holdsPermit(lock, owner, now) then
    return { NOT_HELD, now }
  end
  redis.call('ZREM', lock, owner)
  fitToPermits(lock, now)
  if publish == '' then
    return NOT_PUBLISHED
  end
  return serve(lock, publishTo(publish, prefixed('redisson_lock__channel', lock), '0') or NOT_PUBLISHED)
end

if freed then
  return serve(KEYS[1], freed)
end
local answers = {}
for i = 1, #KEYS do
  answers[i] = answerOf(release, i, i, 1)
end
return answers
