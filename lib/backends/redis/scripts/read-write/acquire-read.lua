--[[
  Acquires the read side of read/write locks.

  KEYS[2i]      lock
  KEYS[2i + 1]  lease of this reader

  ARGV[5]       1: acquire the lock even while others than readers wait in line
  ARGV[5 + i]   owner
]]
-- @template acquire
local option, count = ARGV[5] == '1', #ARGV - 5
local whyWaits, take = whyReaderWaits, takeReader
