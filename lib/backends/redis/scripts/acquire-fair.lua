--[[
  Acquires fair locks: those that are free, for the head of the queue, or for anybody when nobody queues.

  KEYS[1]          clock of the fencing tokens
  KEYS[4i - 2]     lock
  KEYS[4i - 1]     queue: list of waiting owners
  KEYS[4i]         zset: when the place of each lapses
  KEYS[4i + 1]     zset: until when each of our waiters is known to be alive

  ARGV[1]          server time in ms after which it is not executed
  ARGV[2]          highest token that the caller has seen
  ARGV[3]          lease time in ms
  ARGV[4]          tokens to reserve with each acquisition
  ARGV[5]          ms for which to keep a place of those who have to wait; 0: leave no trace
  ARGV[5 + i]      owner

  Returns { reserved with each, answer, ... }: a token, { ttl, holder } when busy, or { { error, types of the keys } }.
  { 'expired', server time in ms } when it came too late.
]]
-- @include request
-- @include each
-- @include tokens
-- @include plain-lock
-- @include fair-queue
local reserve, placeTimeout = tonumber(ARGV[4]), tonumber(ARGV[5])
local count = #ARGV - 5
local now = math.floor(micros / 1000)

local function obstacle(lock, owner, queue, head, lapse)
  local busy = busyPlain(lock, owner)
  if busy or holdsPlain(lock, owner) or not head or head == owner then
    return busy
  end
  return { lapse - now, head }
end

local function acquire(i)
  local lock, owner, queue = KEYS[4 * i - 2], ARGV[5 + i], fairQueue(4 * i - 1)
  local head, lapse = headOf(queue, now)
  local busy = obstacle(lock, owner, queue, head, lapse)
  if busy then
    if placeTimeout > 0 then
      keepPlace(queue, owner, now, placeTimeout)
    end
    return busy
  end
  if not nextToken then
    openClock(KEYS[1], reserve, count)
  end
  takePlain(lock, owner, lease)
  leaveQueue(queue, owner)
  return drawToken()
end

local answers = { 0 }
for i = 1, count do
  answers[1 + i] = each(acquire, i, 4 * i - 2, 4)
end
answers[1] = reserved or 0
return answers
