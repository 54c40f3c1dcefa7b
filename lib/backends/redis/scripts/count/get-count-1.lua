--[[
  Reads the permits of a semaphore, or the count of a latch.

  KEYS[1]  semaphore or latch

  Returns its number, 0 when there is none.
]]
-- @include synchronizers/count-of
return countOf(KEYS[1])
