--[[
  Transfers the write side. An owner that also reads keeps the read side and the lock: then it returns nil as well.

  KEYS[3]  lease of the present owner as a reader, if it also reads
  KEYS[4]  lease of the next owner as a reader, if it also reads
]]
-- @template transfer
local channel, message = prefixed('redisson_rwlock', lock), '1'
local former = redis.call('PTTL', lock)
if isWriter(lock, from) then
  redis.call('HDEL', lock, from .. ':write')
  if longestReader(lock) then
    endWriting(lock)
    publishTo(publish, channel, message)
    pcall(tellLine, lock, publish, KEYS[1], 0)
    return nil
  end
elseif not isWriter(lock, to) then
  return nil
end
reserveTokens(KEYS[1], reserve, 1)
takeWriter(lock, to, leaseTime)
