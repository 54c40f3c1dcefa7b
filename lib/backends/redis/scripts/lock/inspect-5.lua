--[[
  Shows a lock of any type. Changes nothing.

  KEYS[1]  lock
  KEYS[2]  queue of a fair lock: list of waiting owners
  KEYS[3]  zset: when each of them is dropped from the queue
  KEYS[4]  zset: the time until which each of our waiters counts as alive
  KEYS[5]  token counter of a fenced lock

  Returns { mode or '', { owner, ms left, ... }, { waiting owner, ... }, token or nil }.
]]
-- @includes
local lock, queue = KEYS[1], fairQueue(2)
local now = serverTime()
local ttl = redis.call('PTTL', lock)
local mode, owners = '', {}

local held = {}
local _, permit = lockFields(lock)
if permit then
  mode = 'permits'
  local holders = permitHolders(lock, now)
  for h = 1, #holders, 2 do
    held[h], held[h + 1] = holders[h], holders[h + 1] - now
  end
end
local fields = permit and {} or redis.call('HGETALL', lock)
for f = 1, #fields, 2 do
  local owner, value = fields[f], fields[f + 1]
  if owner == 'mode' then
    mode = value
  else
    owners[#owners + 1] = owner
    owners[#owners + 1] = holdsIn(value)
  end
end

for o = 1, #owners, 2 do
  local owner, holds = owners[o], owners[o + 1]
  local left = mode == 'read' and longestHold(lock, owner, holds) or ttl
  -- A writer that also reads is shown once.
  if left ~= NO_KEY and (mode ~= 'write' or string.find(owner, ':write$')) then
    held[#held + 1] = string.gsub(owner, ':write$', '')
    held[#held + 1] = left
  end
end

local waiting = {}
local function add(owners, ...)
  -- One call for each key, because a call for each owner would block Redis for long if many wait.
  local lapses = {}
  for _, scores in ipairs({ ... }) do
    for n = 1, #scores, 2 do
      lapses[scores[n]] = tonumber(scores[n + 1])
    end
  end
  for _, owner in ipairs(owners) do
    if (lapses[owner] or 0) > now then
      waiting[#waiting + 1] = owner
    end
  end
end

local queued = redis.call('LRANGE', queue.list, 0, -1)
if #queued > 0 then
  local timeouts = redis.call('ZRANGE', queue.timeouts, 0, -1, 'WITHSCORES')
  add(queued, timeouts, redis.call('ZRANGE', queue.heartbeats, 0, -1, 'WITHSCORES'))
end
-- A user without the right to the line is shown none.
local line = lineOf(lock)
add(redis.pcall('ZRANGE', line.places, 0, -1), redis.pcall('ZRANGE', line.lapses, 0, -1, 'WITHSCORES'))
return { mode, held, waiting, redis.call('GET', KEYS[5]) }
