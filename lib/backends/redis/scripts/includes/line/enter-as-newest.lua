-- Lets the call of this owner be the newest one of the lock: takes the place of the one before it, which leaves the line
-- and whose client is told, so that it asks and learns it. A hash beside the line has the newest call's owner, its order
-- among all calls, how many it has superseded, and the highest owner number of each client, because a late copy of an
-- earlier request must not take the place of a later call. It outlives the place, so that a call that missed the message
-- learns that it was superseded.
--   superseded  how many calls its process has superseded that are not counted here
--   order       the order that an earlier request of the same call was given, or nil
-- Returns how many calls it has superseded, or -1 if a later call has superseded it, and its order.
local function enterAsNewest(lock, publish, owner, superseded, order, micros, waiterTimeout, describe)
  local line = lineOf(lock)
  local key = newestOf(lock)
  local client, number = string.match(owner, '^(.*):(%d+)$')
  client, number = client or owner, tonumber(number) or 0
  local newest = redis.call('HMGET', key, 'owner', 'order', 'superseded', client)
  local last, lastOrder, count, seen = newest[1], tonumber(newest[2] or 0), tonumber(newest[3] or 0), tonumber(newest[4] or -1)
  if last == owner then
    redis.call('PEXPIRE', key, waiterTimeout * 10)
    return count, lastOrder
  end
  if number <= seen or order and order < lastOrder then
    return -1
  end
  local position = last and redis.call('ZSCORE', line.places, last)
  if position then
    keepPlace(line, owner, position, math.floor(micros / 1000), waiterTimeout, describe)
    leaveLine(line, last)
    publishInLine(line, publish, last, last)
  end
  if order and order == lastOrder then
    superseded = count
  elseif position then
    superseded = superseded + count + 1
  end
  order = order or math.max(micros, lastOrder + 1)
  -- Clients come and go.
  if redis.call('HLEN', key) > 128 then
    redis.call('DEL', key)
  end
  -- If the server's memory is full, later calls cannot supersede this one.
  local fields = { 'owner', owner, 'order', string.format('%.0f', order), 'superseded', string.format('%.0f', superseded) }
  redis.pcall('HSET', key, client, string.format('%.0f', number), unpack(fields))
  redis.call('PEXPIRE', key, waiterTimeout * 10)
  return superseded, order
end
