--[[
  Acquires the write side of read/write locks.

  KEYS[2i]      lock
  KEYS[2i + 1]  lease of this writer as a reader, if it also reads

  ARGV[4 + i]   owner
]]
-- @template acquire
local option, count = nil, #ARGV - 4
local whyWaits, take = whyWriterWaits, takeWriter
