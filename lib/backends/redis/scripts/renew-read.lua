--[[
  Renews the read side of read/write locks, each for its owner.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this reader

  ARGV[1]       lease time in ms
  ARGV[1 + i]   owner

  Returns { server time in ms, answer, ... }: 1, 0 when this owner is not there, or { { error, types of the keys } }.
]]
-- @include each
-- @include read-write
local lease = tonumber(ARGV[1])

local function renew(i)
  local lock, owner = KEYS[2 * i - 1], ARGV[1 + i]
  if not reads(lock, owner) then
    return 0
  end
  setReadLease(lock, owner, lease)
  return 1
end

local answers = { millis() }
for i = 1, #KEYS / 2 do
  answers[1 + i] = each(renew, i, 2 * i - 1, 2)
end
return answers
