--[[
  Releases re-entrant and fenced locks, each for its owner, and tells who waits.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: tell nobody
  ARGV[1 + i]  owner

  Returns for each: how many listened, −1 when this owner was not there, or { { error, type of the lock } }.
]]
-- @include each
-- @include names
-- @include publish
local publish = ARGV[1]

local function release(i)
  local lock = KEYS[i]
  if redis.call('HEXISTS', lock, 'mode') == 1 or redis.call('HDEL', lock, ARGV[1 + i]) == 0 then
    return -1
  end
  return tell(publish, prefixed('redisson_lock__channel', lock), '0')
end

local answers = {}
for i = 1, #KEYS do
  answers[i] = each(release, i, i, 1)
end
return answers
