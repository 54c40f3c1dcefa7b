--[[
  Shows a semaphore or latch. Changes nothing.

  KEYS[1]  semaphore or latch: its number
  KEYS[2]  zset: ids of the permits that are held, and when the lease of each ends
  KEYS[3]  note: hash with the type and the total

  ARGV[1]  maximum number of permits to show
  ARGV[2]  number of bytes to show of each id

  Returns { number, type or '', total or '', permits held, { start of an id in hexadecimal digits, ms left, ... } },
  or nil if the keys contain nothing that can be a semaphore or latch.
]]
-- @includes
local counter, held, note, most, bytes = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), tonumber(ARGV[2])
-- The value that Redisson writes for a permit without a lease.
local FOREVER, NO_LEASE_ENDS = 922337203685477, -1
-- Redisson's numbers have 32 bits.
local LONGEST_NUMBER = 11
local now = serverTime()

local function isA(kind, key)
  return redis.call('TYPE', key)['ok'] == kind
end

local ended, acquired, permits = 0, 0, {}
if isA('zset', held) then
  ended = redis.call('ZCOUNT', held, '-inf', now)
  acquired = redis.call('ZCARD', held) - ended
  local entries = redis.call('ZRANGE', held, ended, ended + most - 1, 'WITHSCORES')
  for e = 1, #entries, 2 do
    local ends = tonumber(entries[e + 1])
    permits[e] = string.gsub(string.sub(entries[e], 1, bytes), '.', function(byte)
      return string.format('%02x', string.byte(byte))
    end)
    permits[e + 1] = ends < FOREVER and ends - now or NO_LEASE_ENDS
  end
end

local number = isA('string', counter) and redis.call('GET', counter) or '0'
if #number > LONGEST_NUMBER or not string.find(number, '^-?%d+$') then
  return nil
end
if acquired + ended == 0 and not isA('string', counter) then
  return nil
end
local kind, total = '', ''
if isA('hash', note) then
  kind, total = redis.call('HGET', note, 'type') or '', redis.call('HGET', note, 'total') or ''
end
return { tonumber(number) + ended, string.sub(kind, 1, 40), string.sub(total, 1, LONGEST_NUMBER), acquired, permits }
