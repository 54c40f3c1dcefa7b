--[[
  Numbers those who were woken and found the lock taken by the same holder all the same.

  KEYS[1]  line: how many there were, and the holder

  ARGV[1]  holder
  ARGV[2]  ms to remember it

  Returns 1, 2, … in the order in which they ask.
]]
local count, holder = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.*)$')
local place = holder == ARGV[1] and count + 1 or 1
redis.call('SET', KEYS[1], place .. ' ' .. ARGV[1], 'PX', ARGV[2])
return place
