-- The writer was removed: the lock is free now, or is read by its former writer.
local function endWriting(lock)
  if redis.call('HLEN', lock) == 1 then
    redis.call('DEL', lock)
  else
    redis.call('HSET', lock, 'mode', 'read')
    fitToReaders(lock)
  end
end
