--[[
  Acquires several locks, or none of them: re-entrant, fenced, read and write ones.

  KEYS[1]       clock of the fencing tokens
  KEYS[3i - 1]  lock
  KEYS[3i]      its token counter, if it is fenced
  KEYS[3i + 1]  zset: writers that wait, and until when that is believed

  ARGV[1]       server time in ms after which it is not executed
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       lease time in ms
  ARGV[4i]      type
  ARGV[4i + 1]  owner
  ARGV[4i + 2]  ms for which to announce a writer that has to wait; 0: leave no trace
  ARGV[4i + 3]  1: a reader stands back while a writer waits

  Returns { 1, token, ... }, or { 0, number of the first that is busy (from 0), ttl, holder },
  or { 'expired', server time in ms } when it came too late.
]]
-- @include request
-- @include tokens
-- @include plain-lock
-- @include read-write
local count = (#KEYS - 1) / 3

for i = 1, count do
  local lock, writers, type, owner = KEYS[3 * i - 1], KEYS[3 * i + 1], ARGV[4 * i], ARGV[4 * i + 1]
  local busy
  if type == 'read' then
    busy = busyReader(lock, owner, writers, ARGV[4 * i + 3] == '1')
  elseif type == 'write' then
    busy = busyWriter(lock, owner)
    if busy and tonumber(ARGV[4 * i + 2]) > 0 then
      announceWriter(writers, owner, math.floor(micros / 1000), tonumber(ARGV[4 * i + 2]))
    end
  else
    busy = busyPlain(lock, owner)
  end
  if busy then
    return { 0, i - 1, busy[1], busy[2] }
  end
end

local reply = { 1 }
openClock(KEYS[1], 0, count)
for i = 1, count do
  local lock, type, owner = KEYS[3 * i - 1], ARGV[4 * i], ARGV[4 * i + 1]
  if type == 'read' then
    takeReader(lock, owner, leaseTime)
  elseif type == 'write' then
    takeWriter(lock, owner, KEYS[3 * i + 1], leaseTime)
  else
    takePlain(lock, owner, lease)
  end
  reply[1 + i] = drawToken()
end
for i = 1, count do
  if ARGV[4 * i] == 'fenced' then
    openCounter(KEYS[3 * i], KEYS[1], 0)
    reply[1 + i] = drawToken()
  end
end
return reply
