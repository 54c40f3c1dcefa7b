-- Call this after the writer was removed. The lock is then free, or its former writer still reads.
local function endWriting(lock)
  if redis.call('HLEN', lock) == 1 then
    redis.call('DEL', lock)
  else
    redis.call('HSET', lock, 'mode', 'read')
    fitToReaders(lock)
  end
end
