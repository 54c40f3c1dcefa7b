--[[
  Shows a lock of any type. Changes nothing.

  KEYS[1]  lock
  KEYS[2]  queue of a fair lock: list of waiting owners
  KEYS[3]  zset: when the place of each lapses
  KEYS[4]  zset: until when each of our waiters is known to be alive
  KEYS[5]  token counter of a fenced lock

  Returns { mode or '', { owner, ms left, ... }, { waiting owner, ... }, token or nil }.
]]
-- @include fair-queue
-- @include read-write
local lock, queue = KEYS[1], fairQueue(2)
local now = millis()
local ttl = redis.call('PTTL', lock)
local mode, owners = '', {}

local fields = redis.call('HGETALL', lock)
for f = 1, #fields, 2 do
  local owner, value = fields[f], fields[f + 1]
  if owner == 'mode' then
    mode = value
  else
    owners[#owners + 1] = owner
    owners[#owners + 1] = tonumber(value) or 0
  end
end

local held = {}
for o = 1, #owners, 2 do
  local owner, left = owners[o], ttl
  if mode == 'read' then
    left = -2
    for hold = 1, owners[o + 1] do
      left = math.max(left, redis.call('PTTL', readLease(lock, owner, hold)))
    end
  end
  -- The read part of a writer is not shown beside it.
  if left ~= -2 and (mode ~= 'write' or string.find(owner, ':write$')) then
    held[#held + 1] = string.gsub(owner, ':write$', '')
    held[#held + 1] = left
  end
end

local waiting = {}
for _, owner in ipairs(redis.call('LRANGE', queue.list, 0, -1)) do
  if lapseOf(queue, owner) > now then
    waiting[#waiting + 1] = owner
  end
end
return { mode, held, waiting, redis.call('GET', KEYS[5]) }
