--[[
  Returns 1 if callers that ask now may have the result of a run: its owner still holds the lock, and results were not
  forgotten since its token. Otherwise 0.

  KEYS[1]  lock
  KEYS[2]  forgotten: see forget-result-4.lua

  ARGV[1]  owner of the run
  ARGV[2]  its fencing token
]]
-- @includes
local lock, forgotten, owner, token = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])

-- Without the lock, a note may be missing: forget-result-4.lua writes none then, and Redis may have lost its data.
if redis.call('HEXISTS', lock, owner) == 0 then
  return 0
end
local _, last = forgottenNote(forgotten)
return (last or 0) > token and 0 or 1
