-- A server whose memory is full refuses a command that may take memory (OOM), but only before the first other write of a
-- script, because a script must not end halfway. So what has no room is refused, and the rest is not affected.

-- Returns whether the command was not refused for lack of memory.
local function writeUnlessFull(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then
    return true
  end
  if string.find(reply.err, 'OOM', 1, true) then
    return false
  end
  error(reply.err, 0)
end

-- A write that changes nothing is a write as well, and reaches neither the replicas nor the AOF. After it, the server takes
-- what a caller already has and keeps. No zset of this library has an empty member.
local function openFullMemory(zset)
  redis.call('ZREM', zset, '')
end
