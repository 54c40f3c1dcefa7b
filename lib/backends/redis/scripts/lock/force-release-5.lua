--[[
  Releases a lock of any type, from all owners or only from the given ones. Wakes its waiters when nobody holds it any
  more. Notifies the client of each removed owner on the client's channel.

  KEYS[1]  lock
  KEYS[2]  queue of a fair lock: list of waiting owners
  KEYS[3]  zset: when each of them is dropped from the queue
  KEYS[4]  zset: the time until which each of our waiters counts as alive
  KEYS[5]  token counter of a fenced lock

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      1: only from the given owners
  ARGV[3]      expected last token: nothing is released when the lock has another one; empty: any
  ARGV[3 + i]  owner

  Returns the removed owners, each once. The list is empty when the lock was free.
]]
-- @include line/time-of-grant
-- @includes
local lock, publish, namesOwners, token = KEYS[1], ARGV[1], ARGV[2] == '1', ARGV[3]

local named = {}
for i = 4, #ARGV do
  named[ARGV[i]] = true
end

local _, permit = lockFields(lock)
local last = token ~= '' and redis.call('GET', KEYS[5])
if last and last ~= token then
  return {}
end
local owners, known, clients = {}, {}, {}
local function noteRemoved(owner)
  if known[owner] then
    return
  end
  known[owner] = true
  owners[#owners + 1] = owner
  local client = string.match(owner, '^(.*):') or owner
  clients[client] = clients[client] or {}
  table.insert(clients[client], owner)
end

local now = serverTime()
if permit then
  local holders = permitHolders(lock, now)
  for h = 1, #holders, 2 do
    local owner = holders[h]
    if named[owner] or not namesOwners then
      redis.call('ZREM', lock, owner)
      noteRemoved(owner)
    end
  end
  fitToPermits(lock, now)
end

local mode = not permit and redis.call('HGET', lock, 'mode')
if mode == 'read' and not fitToReaders(lock) then
  return {}
end
local fields = permit and {} or redis.call('HGETALL', lock)
local leavesReaders = mode == 'read'
for f = 1, #fields, 2 do
  local owner = string.gsub(fields[f], ':write$', '')
  if fields[f] ~= 'mode' and (named[owner] or not namesOwners) then
    redis.call('HDEL', lock, fields[f])
    leavesReaders = leavesReaders or (mode and owner ~= fields[f])
    for hold = 1, holdsIn(fields[f + 1]) do
      redis.call('DEL', readLease(lock, fields[f], hold))
    end
    noteRemoved(owner)
  end
end
if #owners == 0 then
  return {}
end

if leavesReaders then
  endWriting(lock)
end
if permit or redis.call('EXISTS', lock) == 0 then
  publishTo(publish, prefixed('redisson_rwlock', lock), '1')
  local _, head = wakeHead(fairQueue(2), lock, publish, now)
  if head then
    local listeners = publishTo(publish, prefixed('redisson_lock__channel', lock), '0')
    pcall(tellLine, lock, publish, nil, listeners or 0)
  end
end
for client, removed in pairs(clients) do
  -- This channel is in another slot, so SPUBLISH would be refused. PUBLISH reaches the whole cluster.
  publishTo('PUBLISH', 'nestjs_redis_lock_client:{' .. client .. '}', cjson.encode({ key = lock, owners = removed }))
end
return owners
