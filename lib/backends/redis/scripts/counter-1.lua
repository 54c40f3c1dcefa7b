--[[
  Reads a semaphore or a latch.

  KEYS[1]  semaphore or latch

  Returns its number, 0 when there is none.
]]
-- @include counter
return counterOf(KEYS[1])
