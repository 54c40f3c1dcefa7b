--[[
  Extends the announcements of writers that wait for one lock.

  KEYS[1]      zset: waiting writers, and the time until which each counts as alive

  ARGV[1]      waiterTimeout: ms for which to keep them
  ARGV[1 + i]  owner

  Returns an answer for each: 1, or 0 when the writer was no longer announced.
]]
-- @include server-time
-- @include add-unless-full
-- @include read-write/announce-writer
local writers, waiterTimeout = KEYS[1], tonumber(ARGV[1])
local now = serverTime()
local kept = {}

for i = 2, #ARGV do
  local alive = redis.call('ZSCORE', writers, ARGV[i])
  kept[i - 1] = alive and tonumber(alive) > now and 1 or 0
  if kept[i - 1] == 1 then
    announceWriter(writers, ARGV[i], now, waiterTimeout)
  end
end
return kept
