--[[
  Takes over a detached lock. Transfers it from the owner of the ticket, which the ticket's secret identifies, to
  another owner with a fresh lease. If it is sent twice, it transfers the lock once and does not shorten the next
  owner's lease.

  KEYS[1]  re-entrant, fenced or read/write lock (its write side)
  KEYS[2]  clock of the fencing tokens, or the counter of a fenced lock

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  client that detached the lock
  ARGV[5]  secret of the ticket
  ARGV[6]  next owner
  ARGV[7]  suffix of an owner in the lock's hash: `:write` for a writer, otherwise empty
  ARGV[8]  PUBLISH or SPUBLISH

  Returns { token, 0 }, or { holder } when neither of the two owners holds the lock. The holder is '' when it is free.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local lock, to, suffix, publish = KEYS[1], ARGV[6], ARGV[7], ARGV[8]
local from = ARGV[4] .. ':t-' .. redis.sha1hex(ARGV[5])
local writes = suffix ~= ''
local channel = prefixed(writes and 'redisson_rwlock' or 'redisson_lock__channel', lock)
local former = redis.call('PTTL', lock)

local function holds(owner)
  local mode = redis.pcall('HGET', lock, 'mode')
  if type(mode) == 'table' then -- a lock that n may hold has other owners; holderOf refuses anything else
    return false
  end
  return redis.call('HEXISTS', lock, owner .. suffix) == 1 and mode == (writes and 'write')
end

local isFirst = holds(from)
if not isFirst and not holds(to) then
  return { holderOf(lock) }
end
reserveTokens(KEYS[2], 0, 1)
if isFirst then
  redis.call('HSET', lock, to .. suffix, '1')
  redis.call('HDEL', lock, from .. suffix)
  expire(lock, leaseTime)
  wakeLineIfShorter(lock, publish, channel, writes and '1' or '0', former, leaseTime)
else
  expire(lock, math.max(leaseTime, former))
end
return { nextToken(), reserved }
