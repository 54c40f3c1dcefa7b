--[[
  Acquires several locks, or none of them. They can be re-entrant, fenced, read or write locks.

  KEYS[1]       clock of the fencing tokens
  KEYS[3i - 1]  lock
  KEYS[3i]      its token counter, used for a fenced lock
  KEYS[3i + 1]  lease of this owner as a reader, used for read and write locks

  ARGV[1]       server time in ms after which the script does nothing
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       lease time in ms
  ARGV[3i + 1]  type
  ARGV[3i + 2]  owner
  ARGV[3i + 3]  1: a reader may acquire the lock while others wait in line

  Returns { ALL_ACQUIRED (1), token, ... }, { ONE_IS_BUSY (0), index of the first busy lock (from 0), ttl, holder }, or
  { ONE_FAILED (2), its index, { { error, types of the keys } } }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local ALL_ACQUIRED, ONE_IS_BUSY, ONE_FAILED = 1, 0, 2
local count = (#KEYS - 1) / 3

local function findBusy(i)
  local lock, type, owner = KEYS[3 * i - 1], ARGV[3 * i + 1], ARGV[3 * i + 2]
  if type == 'read' then
    return whyReaderWaits(lock, owner, ARGV[3 * i + 3] == '1')
  elseif type == 'write' then
    return whyWriterWaits(lock, owner)
  end
  return whyOwnerWaits(lock, owner)
end

for i = 1, count do
  local busy = answerOf(findBusy, i, 3 * i - 1, 3)
  if busy and type(busy[1]) == 'table' then
    return { ONE_FAILED, i - 1, busy }
  elseif busy then
    return { ONE_IS_BUSY, i - 1, busy[1], busy[2] }
  end
end

-- All tokens come before the first lock, because the key of a counter may contain something else.
local function takeFencedToken(i)
  reserveFencedTokens(KEYS[3 * i], KEYS[1], 0)
  return nextToken()
end

local reply = { ALL_ACQUIRED }
reserveTokens(KEYS[1], 0, count)
for i = 1, count do
  reply[1 + i] = nextToken()
end
for i = 1, count do
  if ARGV[3 * i + 1] == 'fenced' then
    local token = answerOf(takeFencedToken, i, 3 * i - 1, 3)
    if type(token) == 'table' then
      return { ONE_FAILED, i - 1, token }
    end
    reply[1 + i] = token
  end
end
for i = 1, count do
  local lock, type, owner = KEYS[3 * i - 1], ARGV[3 * i + 1], ARGV[3 * i + 2]
  if type == 'read' then
    takeReader(lock, owner, leaseTime)
  elseif type == 'write' then
    takeWriter(lock, owner, leaseTime)
  else
    takePlain(lock, owner, lease)
  end
end
return reply
