--[[
  Acquires several locks, or none of them: re-entrant, fenced, read and write ones.

  KEYS[1]       clock of the fencing tokens
  KEYS[3i - 1]  lock
  KEYS[3i]      its token counter, if it is fenced
  KEYS[3i + 1]  zset: writers that wait, and until when that is believed

  ARGV[1]       highest token that the caller has seen
  ARGV[5i - 3]  type
  ARGV[5i - 2]  owner
  ARGV[5i - 1]  lease time in ms
  ARGV[5i]      ms for which to announce a writer that has to wait; 0: leave no trace
  ARGV[5i + 1]  1: a reader stands back while a writer waits

  Returns { 1, token, ... }, or { 0, number of the first that is busy (from 0), ttl, holder }.
]]
-- @include tokens
-- @include plain-lock
-- @include read-write
local seen = tonumber(ARGV[1])
local count = (#KEYS - 1) / 3

for i = 1, count do
  local lock, writers, type, owner = KEYS[3 * i - 1], KEYS[3 * i + 1], ARGV[5 * i - 3], ARGV[5 * i - 2]
  local busy
  if type == 'read' then
    busy = busyReader(lock, owner, writers, ARGV[5 * i + 1] == '1')
  elseif type == 'write' then
    busy = busyWriter(lock, owner)
    if busy and tonumber(ARGV[5 * i]) > 0 then
      announceWriter(writers, owner, millis(), tonumber(ARGV[5 * i]))
    end
  else
    busy = busyPlain(lock, owner)
  end
  if busy then
    return { 0, i - 1, busy[1], busy[2] }
  end
end

local reply = { 1 }
openClock(KEYS[1], seen, 0, count)
for i = 1, count do
  local lock, type, owner, lease = KEYS[3 * i - 1], ARGV[5 * i - 3], ARGV[5 * i - 2], tonumber(ARGV[5 * i - 1])
  if type == 'read' then
    takeReader(lock, owner, lease)
  elseif type == 'write' then
    takeWriter(lock, owner, KEYS[3 * i + 1], lease)
  else
    takePlain(lock, owner, lease)
  end
  reply[1 + i] = drawToken()
end
for i = 1, count do
  if ARGV[5 * i - 3] == 'fenced' then
    openClock(KEYS[3 * i], seen, 0, 1)
    reply[1 + i] = drawToken()
  end
end
return reply
