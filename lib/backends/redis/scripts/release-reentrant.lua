--[[
  Releases re-entrant and fenced locks, each for its owner, and tells who waits.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: tell nobody
  ARGV[1 + i]  owner

  Returns for each: how many listened, −2 when nobody could be told, { −1, server time in ms } when this owner was not there, or
  { { error, type of the lock } }.
  The same number for all comes bare: Redis sends it at less cost than a list.
]]
-- @include names
-- @include time
local pcall = redis.pcall
local publish = ARGV[1]
local answers = {}

for i = 1, #KEYS do
  local lock = KEYS[i]
  local there = pcall('HDEL', lock, ARGV[1 + i])
  if there == 1 then
    local listeners = publish == '' and 0 or pcall(publish, prefixed('redisson_lock__channel', lock), '0')
    -- A user who may not publish has freed the lock all the same.
    answers[i] = type(listeners) == 'number' and listeners or -2
  elseif there == 0 then
    answers[i] = { -1, millis() }
  else
    answers[i] = { { there.err, pcall('TYPE', lock).ok or 'unknown' } }
  end
end
local same = type(answers[1]) == 'number'
for i = 2, #answers do
  same = same and answers[i] == answers[1]
end
return same and answers[1] or answers
