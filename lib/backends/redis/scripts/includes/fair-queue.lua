-- @include time

-- The queue of a fair lock, as Redisson has it: a list of owners, and the time (ms) at which each place lapses, in `timeouts`.
-- Waiters of ours say again and again that they are alive, and stand in `places` too, with the time until which that is believed.
-- Java's do not. Whoever of them gets the lock subtracts its own waiting time from everybody's timeout: 300 s for lock(). So
-- waiters of ours get as much on top for each Java waiter before them; it only ever matters to Java.
local JAVA_WAIT = 300000

local function fairQueue(first)
  return { list = KEYS[first], timeouts = KEYS[first + 1], places = KEYS[first + 2] }
end

local function lapseOf(queue, owner)
  local lapse = redis.call('ZSCORE', queue.places, owner) or redis.call('ZSCORE', queue.timeouts, owner)
  return tonumber(lapse or 0)
end

-- How many of the keys held something of this owner.
local function leaveQueue(queue, owner)
  return redis.call('LREM', queue.list, 1, owner)
    + redis.call('ZREM', queue.timeouts, owner)
    + redis.call('ZREM', queue.places, owner)
end

-- Who is next, and when that place lapses; nil when nobody waits. Those before it who died are dropped.
local function headOf(queue, now)
  while true do
    local head = redis.call('LINDEX', queue.list, 0)
    if not head then
      return nil
    end
    local lapse = lapseOf(queue, head)
    if lapse > now then
      return head, lapse
    end
    leaveQueue(queue, head)
  end
end

local function setLapse(queue, owner, timeout, alive, placeTimeout)
  redis.call('ZADD', queue.timeouts, timeout, owner)
  redis.call('ZADD', queue.places, alive, owner)
  redis.call('PEXPIRE', queue.places, math.max(redis.call('PTTL', queue.places), placeTimeout))
end

local function javaWaiters(queue)
  return math.max(0, redis.call('LLEN', queue.list) - redis.call('ZCARD', queue.places))
end

-- A place at the end, or a longer life for the one that is there.
local function keepPlace(queue, owner, now, placeTimeout)
  local timeout = redis.call('ZSCORE', queue.timeouts, owner)
  local alive = now + placeTimeout
  if timeout and lapseOf(queue, owner) > now then
    setLapse(queue, owner, math.max(tonumber(timeout), alive), alive, placeTimeout)
    return
  end
  leaveQueue(queue, owner)
  local last = redis.call('LINDEX', queue.list, -1)
  timeout = alive + JAVA_WAIT * javaWaiters(queue)
  if last and not redis.call('ZSCORE', queue.places, last) then
    timeout = math.max(timeout, lapseOf(queue, last) + placeTimeout)
  end
  redis.call('RPUSH', queue.list, owner)
  setLapse(queue, owner, timeout, alive, placeTimeout)
end
