--[[
  Keeps the announcements of writers that wait for one lock.

  KEYS[1]      zset: writers that wait, and until when that is believed

  ARGV[1]      ms for which to keep them
  ARGV[1 + i]  owner

  Returns for each: 1, or 0 when its announcement was gone.
]]
-- @include read-write
local now = millis()
local kept = {}
for i = 2, #ARGV do
  local alive = redis.call('ZSCORE', KEYS[1], ARGV[i])
  kept[i - 1] = alive and tonumber(alive) > now and 1 or 0
  if kept[i - 1] == 1 then
    announceWriter(KEYS[1], ARGV[i], now, tonumber(ARGV[1]))
  end
end
return kept
