--[[
  Acquires free fair locks for the head of the queue, or for any owner if nobody waits.

  KEYS[1]          clock of the fencing tokens
  KEYS[4i - 2]     lock
  KEYS[4i - 1]     queue: list of waiting owners
  KEYS[4i]         zset: when each of them is dropped from the queue
  KEYS[4i + 1]     zset: the time until which each of our waiters counts as alive

  ARGV[1]          server time in ms after which the script does nothing
  ARGV[2]          highest token that the caller has seen
  ARGV[3]          lease time in ms
  ARGV[4]          tokens to reserve with each acquisition
  ARGV[5]          waiterTimeout: ms for which an owner that has to wait stays in the queue; 0: it does not enter the
                   queue
  ARGV[5 + i]      owner

  Returns { reserved with each, answer, ... }, where an answer is a token, { ttl, holder, held as } when busy, or { { error,
  types of the keys } }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local reserve, waiterTimeout = tonumber(ARGV[4]), tonumber(ARGV[5])
local count = #ARGV - 5
local now = math.floor(micros / 1000)

local function busyFair(lock, owner, queue)
  local head, time = headOf(queue, now)
  local busy = whyOwnerWaits(lock, owner)
  if busy or holdsPlain(lock, owner) or not head or head == owner then
    return busy
  end
  return { time - now, head }
end

local function acquire(i)
  local lock, owner, queue = KEYS[4 * i - 2], ARGV[5 + i], fairQueue(4 * i - 1)
  local busy = busyFair(lock, owner, queue)
  if busy then
    if waiterTimeout > 0 then
      enterQueue(queue, owner, now, waiterTimeout)
    end
    return busy
  end
  if not upcoming then
    reserveTokens(KEYS[1], reserve, count)
  end
  takePlain(lock, owner, lease)
  leaveQueue(queue, owner)
  return nextToken()
end

local answers = { 0 }
for i = 1, count do
  answers[1 + i] = answerOf(acquire, i, 4 * i - 2, 4)
end
answers[1] = reserved or 0
return answers
