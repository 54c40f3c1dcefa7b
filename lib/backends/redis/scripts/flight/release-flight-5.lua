--[[
  Stores the result of a single flight if its owner still holds the lock, then releases the lock and notifies waiters.
  If the script is sent twice, this happens only once.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  result: see acquire-flight-5.lua
  KEYS[4]  wanted: exists while a caller waits for a result
  KEYS[5]  forgotten: see forget-result-4.lua

  ARGV[1]  server time in ms at which the runner stops waiting for the answer. If the script runs later, the run counts
           as ended at this time, because callers may have asked after the runner had its result
  ARGV[2]  PUBLISH or SPUBLISH
  ARGV[3]  highest token that the caller has seen
  ARGV[4]  owner
  ARGV[5]  its fencing token
  ARGV[6]  how long to keep the result, in ms; 0: only for callers that wait for it now
  ARGV[7]  value of the result

  Returns { listeners or NOT_PUBLISHED (-2), 1 when the result was stored, reason for a refusal }, or { NOT_HELD (-1),
  server time in ms, 1 if this owner has already stored its result }.
]]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local seen = tonumber(ARGV[3])
-- @includes
-- How long, in ms, a result is kept at least. By then, all waiting callers have read it.
local SHORTEST = 10000
local clock, lock, result, wanted = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, owner, token, keepFor, value = ARGV[2], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

if redis.call('HEXISTS', lock, owner) == 0 then
  return { NOT_HELD, serverTime(), redis.pcall('HGET', result, 'run') == owner and 1 or 0 }
end

-- If the result was forgotten while it was computed, only callers that were already waiting get it. If an owner has
-- asked for the lock twice, the first record may be older than its token. Then callers that began to ask after the
-- token do not get the result.
local first, last = forgottenNote(KEYS[5])
local isStale = last ~= nil and last > token
local forgotten = isStale and math.max(first, token)
if isStale then
  keepFor = 0
end

local isStored, refusal = 0, ''
if keepFor > 0 or redis.call('EXISTS', wanted) == 1 then
  local reading = nextReading(clock)
  local time = math.min(micros, ARGV[1] * 1000)
  -- Readings are never behind the server's time. So whoever asked after this time has a later reading.
  local ended = time < micros and time or reading
  local function inDigits(number)
    return string.format('%.0f', number)
  end
  -- This is the first write of the script, because Redis does not refuse later ones for lack of memory. An error after
  -- HDEL would leave the lock free without a notified waiter.
  local written = redis.pcall('HSET', result, 'value', value, 'run', owner, 'ended', inDigits(ended), 'before',
    inDigits(isStale and math.min(forgotten, ended) or ended), 'kept', inDigits(ended + keepFor * 1000), 'time',
    inDigits(time))
  if type(written) == 'number' then
    written = redis.pcall('PEXPIRE', result, inDigits(math.max(keepFor, SHORTEST)))
    if type(written) == 'table' then
      redis.pcall('DEL', result)
    end
    redis.pcall('SET', clock, inDigits(reading))
  end
  if type(written) == 'table' then
    refusal = written.err
  else
    isStored = 1
  end
end

redis.call('HDEL', lock, owner)
redis.pcall('DEL', wanted)
-- The lock is released even if the user may not publish.
local listeners = redis.pcall(publish, prefixed('redisson_lock__channel', lock), '0')
pcall(tellLine, lock, publish, clock, type(listeners) == 'number' and listeners or 0)
return { type(listeners) == 'number' and listeners or NOT_PUBLISHED, isStored, refusal }
