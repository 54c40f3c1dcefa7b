--[[
  Releases a lock of any type, whoever holds it, wakes its waiters, and tells the clients of the removed owners, each on its own channel.

  KEYS[1]  lock
  KEYS[2]  queue of a fair lock: list of waiting owners
  KEYS[3]  zset: when each of them loses its place
  KEYS[4]  zset: the time until which each of our waiters counts as alive

  ARGV[1]  PUBLISH or SPUBLISH

  Returns the removed owners, each once; none when the lock was free.
]]
-- @include ttl-replies
-- @include server-time
-- @include prefixed
-- @include suffixed
-- @include publish-to
-- @include fair/fair-queue
-- @include fair/waits-until
-- @include fair/leave-queue
-- @include fair/head-of
-- @include fair/wake-head
-- @include read-write/read-lease
-- @include read-write/longest-hold
-- @include read-write/longest-reader
-- @include read-write/fit-to-readers
local lock, publish = KEYS[1], ARGV[1]

if redis.call('HGET', lock, 'mode') == 'read' and not fitToReaders(lock) then
  return {}
end
local fields = redis.call('HGETALL', lock)
if redis.call('DEL', lock) == 0 then
  return {}
end
local owners, known, clients = {}, {}, {}
for f = 1, #fields, 2 do
  for hold = 1, tonumber(fields[f + 1]) or 0 do
    redis.call('DEL', readLease(lock, fields[f], hold))
  end
  local owner = string.gsub(fields[f], ':write$', '')
  if owner ~= 'mode' and not known[owner] then
    known[owner] = true
    owners[#owners + 1] = owner
    local client = string.match(owner, '^(.*):') or owner
    clients[client] = clients[client] or {}
    table.insert(clients[client], owner)
  end
end
publishTo(publish, prefixed('redisson_lock__channel', lock), '0')
publishTo(publish, prefixed('redisson_rwlock', lock), '1')
wakeHead(fairQueue(2), lock, publish, serverTime())
for client, removed in pairs(clients) do
  -- This channel is in another slot: SPUBLISH would be refused, PUBLISH reaches the whole cluster.
  publishTo('PUBLISH', 'nestjs_redis_lock_client:{' .. client .. '}', cjson.encode({ key = lock, owners = removed }))
end
return owners
