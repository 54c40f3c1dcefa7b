--[[
  Reads the owners that hold a lock of any type. Changes nothing.

  KEYS[1]  lock

  Returns { owner, ... }. The list is empty when the lock is free.
]]
-- @includes
local lock = KEYS[1]
local owners = {}

local _, permit = lockFields(lock)
if permit then
  local holders = permitHolders(lock, serverTime())
  for h = 1, #holders, 2 do
    owners[#owners + 1] = holders[h]
  end
  return owners
end

local mode = redis.call('HGET', lock, 'mode')
local fields = redis.call('HGETALL', lock)
for f = 1, #fields, 2 do
  local owner, holds = fields[f], holdsIn(fields[f + 1])
  if mode == 'read' then
    if owner ~= 'mode' and longestHold(lock, owner, holds) ~= NO_KEY then
      owners[#owners + 1] = owner
    end
  elseif mode == 'write' then
    owners[#owners + 1] = string.match(owner, '^(.*):write$')
  elseif owner ~= 'mode' then
    owners[#owners + 1] = owner
  end
end
return owners
