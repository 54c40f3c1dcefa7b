--[[
  Acquires re-entrant locks, each for an owner of its own. An owner that is there already gets a fresh lease.

  KEYS[1]      clock of the fencing tokens
  KEYS[1 + i]  lock

  ARGV[1]      server time in ms after which it is not executed
  ARGV[2]      highest token that the caller has seen
  ARGV[3]      lease time in ms
  ARGV[4]      tokens to reserve with each acquisition
  ARGV[4 + i]  owner

  Returns { reserved with each, answer, ... }: a token, { ttl, holder } when busy, or { { error, type of the lock } }.
  Where all were free and nothing is reserved, the first token comes bare, and the others follow it: Redis sends a number at less
  cost than a list. { 'expired', server time in ms } when it came too late.
]]
-- @include request
-- @include expire
-- @include tokens
local call = redis.call
local reserve = tonumber(ARGV[4])
local count = #ARGV - 4
local answers = { 0 }
local taken

-- Free locks first, with nothing defined for the others yet: this is the path that has to be fast.
for i = 1, count do
  local lock = KEYS[1 + i]
  local ttl = call('PTTL', lock)
  if ttl == -2 then
    if not nextToken then
      openClock(KEYS[1], reserve, count)
    end
    call('HSET', lock, ARGV[4 + i], '1')
    expire(lock, lease)
    answers[1 + i] = drawToken()
  else
    taken = taken or {}
    taken[#taken + 1] = { i, ttl }
  end
end

if not taken then
  if reserved == 0 then
    return answers[2]
  end
  answers[1] = reserved
  return answers
end

-- @include each
-- @include plain-lock
local function acquire(item)
  local i, ttl = item[1], item[2]
  local lock, owner = KEYS[1 + i], ARGV[4 + i]
  local busy = busyPlain(lock, owner, ttl)
  if busy then
    return busy
  end
  if not nextToken then
    openClock(KEYS[1], reserve, count)
  end
  takePlain(lock, owner, lease)
  return drawToken()
end

for _, item in ipairs(taken) do
  local i = item[1]
  answers[1 + i] = each(acquire, item, 1 + i, 1)
end
answers[1] = reserved or 0
return answers
