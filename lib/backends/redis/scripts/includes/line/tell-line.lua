-- For how many ms a free lock is left to those who stand in no line, or were told of it: HEAD_START in line-backend.ts.
local HEAD_START = 10
-- A later time than this from now was written by somebody else, or before the server's clock was set back.
local LONGEST_HEAD_START = 5000
-- How many readers are told at once.
local MOST_READERS = 128

local function anybodyFits()
  return true
end

local function nobodyFits()
  return nil
end

-- Which places a lock has room for: all if it is free, those that want one of the permits that are left, or readers in
-- front if others read.
local function roomIn(lock, isFree, now)
  if isFree then
    return anybodyFits
  end
  local kind = typeOf(lock)
  if kind == 'zset' then
    local held = redis.call('ZCOUNT', lock, '(' .. now, '+inf')
    return function(place)
      return (place.permits or 0) > held
    end
  elseif kind == 'hash' and redis.call('HGET', lock, 'mode') == 'read' then
    return function(place)
      return place.reads
    end
  end
  return nobodyFits
end

-- Tells a place that something has changed. If it reads, so may the readers right behind it. The next place is told of a
-- free lock as well, because the first may not come, and asks a while later. Who asks is not told, or it would ask again at once.
local function tell(line, publish, first, tellsNext, suffix, asker)
  local position = redis.call('ZSCORE', line.places, first.owner)
  local most = first.reads and MOST_READERS or tellsNext and 2 or 1
  for i, owner in ipairs(redis.call('ZRANGE', line.places, position, '+inf', 'BYSCORE', 'LIMIT', 0, most)) do
    local follows = first.reads and redis.call('HGET', line.terms, owner) == READS
    if owner ~= asker and (i == 1 or follows or (i == 2 and tellsNext)) then
      publishInLine(line, publish, owner, owner .. ((i == 1 or follows) and suffix or ' free'))
    end
    if not follows and i > 1 then
      break
    end
  end
end

-- Until when a free lock is left to clients that stand in no line. If any listen, or it is uncertain whether they do, every
-- second release leaves it to them.
--   listeners  after a release, how many clients listen outside the line
local function leaveToOthers(line, publish, clock, now, listeners)
  local headStart = timeIn(line, HEAD_START_UNTIL)
  if listeners == nil then
    return headStart and headStart > now and headStart <= now + LONGEST_HEAD_START and headStart or nil
  elseif headStart then
    redis.call('ZREM', line.lapses, HEAD_START_UNTIL)
  elseif listeners > 0 then
    redis.call('ZADD', line.lapses, now + HEAD_START, HEAD_START_UNTIL)
    return now + HEAD_START
  elseif not countsAll(publish, clock) then
    redis.call('ZADD', line.lapses, 0, HEAD_START_UNTIL)
    return now
  end
end

-- Until when a free lock is left to the first of those who are told now. They go first once, from when it became free.
local function leaveToTold(line, now, wasReleased)
  local untilTime = timeIn(line, TOLD_UNTIL)
  if wasReleased or not untilTime or untilTime > now + LONGEST_HEAD_START then
    untilTime = now + HEAD_START
    redis.call('ZADD', line.lapses, untilTime, TOLD_UNTIL)
  end
  return untilTime
end

-- Leaves a lock as it is, and tells those whose turn it is. Returns { ms until others may have it, the first place }.
local function tellFirst(line, publish, now, first, canAsk, leftUntil, listeners, asker)
  local isLeftToOthers = leftUntil and leftUntil > now
  tell(line, publish, first, canAsk and not isLeftToOthers and not asker, isLeftToOthers and ' free' or '', asker)
  local untilTime = isLeftToOthers and leftUntil or canAsk and leaveToTold(line, now, listeners ~= nil) or first.lapse
  return { math.max(1, math.ceil(untilTime - now)), isLeftToOthers and '' or first.owner }
end

-- Tells the line of a lock that has changed or become free, and grants it to nobody.
local function tellLine(lock, publish, clock, listeners)
  local line, now = lineOf(lock), serverTime()
  local isFree = redis.call('EXISTS', lock) == 0
  local _, first = nextPlace(line, publish, clock, now, roomIn(lock, isFree, now))
  if first then
    local leftUntil = isFree and leaveToOthers(line, publish, clock, now, listeners) or nil
    tellFirst(line, publish, now, first, isFree, leftUntil, listeners)
  end
end
