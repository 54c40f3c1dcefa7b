--[[
  Gives a ticket to an owner that was woken and found the lock still held by the same holder.

  KEYS[1]  number of the last ticket, and the holder

  ARGV[1]  holder
  ARGV[2]  ms for which to keep it

  Returns 1, 2, … in the order of the calls. Starts from 1 again when the holder changes.
]]
local last, holder = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.*)$')
local ticket = holder == ARGV[1] and last + 1 or 1
redis.call('SET', KEYS[1], ticket .. ' ' .. ARGV[1], 'PX', ARGV[2])
return ticket
