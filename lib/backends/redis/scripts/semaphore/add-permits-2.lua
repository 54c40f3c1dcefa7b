--[[
  Adds permits to a semaphore, and tells waiters. A negative number takes permits away, below zero if need be.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  latest request of this session

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  sequence number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  permits to add
  ARGV[5]  1: only to a semaphore that exists

  Returns 1, or 0 when it does not exist.
]]
-- @include prefixed
-- @include publish-to
-- @include synchronizers/count-of
-- @include synchronizers/publish-permits
-- @include synchronizers/requests
-- @include synchronizers/remember-request
local semaphore, latest = KEYS[1], KEYS[2]
local publish, sequence, lifetime, permits = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if earlierAnswer(latest, sequence) then
  return 1
end
if ARGV[5] == '1' and redis.call('EXISTS', semaphore) == 0 then
  return 0
end
local available = countOf(semaphore) + permits
rememberRequest(latest, sequence, '', lifetime)
redis.call('INCRBY', semaphore, permits)
if permits > 0 then
  publishPermits(publish, semaphore, available)
end
return 1
