-- Adds a member to a zset, or keeps it there, also on a server whose memory is full.
local function addAlthoughFull(zset, score, member)
  if not writeUnlessFull('ZADD', zset, score, member) then
    openFullMemory(zset)
    redis.call('ZADD', zset, score, member)
  end
end
