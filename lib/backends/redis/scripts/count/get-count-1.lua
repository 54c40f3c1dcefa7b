--[[
  Reads the permits of a semaphore, or the count of a latch.

  KEYS[1]  semaphore or latch

  Returns its number, or 0 when it does not exist.
]]
-- @includes
return countOf(KEYS[1])
