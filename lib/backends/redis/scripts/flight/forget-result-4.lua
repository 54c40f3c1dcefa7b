--[[
  Deletes the result of a single flight. A run that holds the lock now will not keep its result, and no more
  callers join it.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  result
  KEYS[4]  forgotten: `<first>,<last>`, the first and the last reading at which results were forgotten since the present
           run began. Results may have been forgotten in between as well

  ARGV[1]  highest token that the caller has seen

  Returns 1 when there was a result, otherwise 0.
]]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local seen = tonumber(ARGV[1])
-- @includes
local forgotten = KEYS[4]

local deleted = redis.call('DEL', KEYS[3])
-- A run that does not hold the lock stores nothing.
local ttl = redis.call('PTTL', KEYS[2])
if ttl ~= NO_KEY then
  reserveTokens(KEYS[1], 0, 1)
  local reading = nextToken()
  local note = string.format('%.0f,%.0f', forgottenNote(forgotten) or reading, reading)
  redis.call('SET', forgotten, note, 'PX', ttl + FORGOTTEN_LONGER)
end
return deleted
