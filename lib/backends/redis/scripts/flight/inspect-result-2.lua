--[[
  Shows the result of a single flight, but not its value. Changes nothing.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  result

  Returns { size in bytes, ms for which it is kept }, or nil when no result is kept.
]]
local time = redis.call('TIME')
local kept = tonumber(redis.call('HGET', KEYS[2], 'kept'))
local now = math.max(time[1] * 1000000 + time[2], tonumber(redis.call('GET', KEYS[1]) or 0))
if not kept or kept <= now then
  return nil
end
local left = math.min(math.ceil((kept - now) / 1000), redis.call('PTTL', KEYS[2]))
return { redis.call('HSTRLEN', KEYS[2], 'value'), left }
