--[[
  Frees a lock of any type, whoever holds it, wakes who waits, and tells the clients of the removed owners, each on its own channel.

  KEYS[1]  lock
  KEYS[2]  queue of a fair lock: list of waiting owners
  KEYS[3]  zset: when the place of each lapses
  KEYS[4]  zset: until when each of our waiters is known to be alive

  ARGV[1]  PUBLISH or SPUBLISH

  Returns the removed owners, each once; none: it was free.
]]
-- @include wake-head
-- @include read-write
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
tell(publish, prefixed('redisson_lock__channel', lock), '0')
tell(publish, prefixed('redisson_rwlock', lock), '1')
wakeHead(fairQueue(2), lock, publish, millis())
for client, removed in pairs(clients) do
  -- A channel of another slot: SPUBLISH would be refused, PUBLISH reaches all of a cluster.
  tell('PUBLISH', 'nestjs_redis_lock_client:{' .. client .. '}', cjson.encode({ key = lock, owners = removed }))
end
return owners
