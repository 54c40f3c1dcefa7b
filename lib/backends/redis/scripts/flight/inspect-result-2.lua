--[[
  Shows the result of a single flight, but not its value. Changes nothing.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  result

  Returns { size in bytes, ms for which it is kept }, or nil when no result is kept.
]]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local stored = redis.call('HMGET', KEYS[2], 'ended', 'kept', 'time')
local ended, kept, endTime = tonumber(stored[1]), tonumber(stored[2]), tonumber(stored[3])
if not (ended and kept and endTime) then
  return nil
end
local now = math.max(micros, tonumber(redis.call('GET', KEYS[1]) or 0))
local left = math.min(kept - now, endTime + kept - ended - micros)
if left <= 0 then
  return nil
end
return { redis.call('HSTRLEN', KEYS[2], 'value'), math.min(math.ceil(left / 1000), redis.call('PTTL', KEYS[2])) }
