--[[
  Returns the result of a single flight if the caller may get it. Otherwise acquires the lock of the flight if it is
  free. An owner that already holds the lock gets a fresh lease.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  result: hash of value, run (the owner that stored it), three readings of the clock: ended, before
           (callers that began to ask before this reading may have the result) and kept (callers with keepFor may have
           it until this reading), and time (the server's in µs when the run ended)
  KEYS[4]  wanted: exists while a caller waits for a result
  KEYS[5]  forgotten: see forget-result-4.lua

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  owner
  ARGV[5]  reading at which the caller began to ask; empty: now
  ARGV[6]  maximum age of a result that the caller accepts, in ms; 0: none that ended before it began to ask
  ARGV[7]  maximum size in bytes of a result that is sent in the answer
  ARGV[8]  maximum size in bytes of a result that the caller accepts

  Returns { 'acquired', token }, { 'busy', ttl, holder, reading, held as }, or { 'result', run, ended, before, kept, reading,
  age in µs (below 0: unknown), value }.
  Returns { 'large' } instead of a result that is too large for the answer. Then nothing was acquired.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
-- `wanted` exists this much longer than the holder's lease, in ms, because a waiter asks again when the lease ends.
local LONGER = 1000
local lock, result, wanted, owner = KEYS[2], KEYS[3], KEYS[4], ARGV[4]
local begin, keepFor = tonumber(ARGV[5]), tonumber(ARGV[6])

reserveTokens(KEYS[1], 0, 1)
local reading = nextToken()

-- Values that this library does not write count as no result.
local stored = redis.pcall('HMGET', result, 'run', 'ended', 'before', 'kept', 'time')
local function readingOf(text)
  return text and #text <= 16 and string.find(text, '^%d+$') and tonumber(text)
end
local run, ended, before, kept = stored[1], readingOf(stored[2]), readingOf(stored[3]), readingOf(stored[4])
local endTime = readingOf(stored[5])
if not (ended and before and kept) then
  run = nil
end

local isLateCopy = run == owner
-- Whether the caller may get the result: the same rule as mayShareResult() in lib/backends/may-share-result.ts.
if run and not isLateCopy then
  local isAwaited = begin and begin < before
  -- After the server's time was set back, readings stand still until it has caught up. If the time was set back after
  -- the run had ended, the age is unknown.
  local age, ageInTime = reading - ended, endTime and micros - endTime or -1
  age = math.min(age, ageInTime) < 0 and -1 or math.max(age, ageInTime)
  local isKept = keepFor > 0 and age >= 0 and age <= math.min(kept - ended, keepFor * 1000)
  local size = redis.call('HSTRLEN', result, 'value')
  if (isAwaited or isKept) and size <= tonumber(ARGV[8]) and redis.call('HEXISTS', result, 'value') == 1 then
    if size > tonumber(ARGV[7]) then
      return { 'large' }
    end
    return { 'result', run, ended, before, kept, reading, age, redis.call('HGET', result, 'value') }
  end
end

local ttl = redis.call('PTTL', lock)
local busy = whyOwnerWaits(lock, owner, ttl)
if busy then
  redis.call('SET', wanted, '1', 'PX', ttl + LONGER)
  return { 'busy', busy[1], busy[2], reading, busy[3] }
end
-- The flight of this owner has ended.
if isLateCopy then
  return { 'busy', 1, '', reading }
end
-- A new run ignores earlier records of forgotten results. (An owner that asks again may already be running.)
if ttl == NO_KEY then
  redis.call('DEL', KEYS[5])
end
takePlain(lock, owner, lease)
return { 'acquired', reading }
