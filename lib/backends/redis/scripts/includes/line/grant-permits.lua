-- For how many ms a lock is granted to the first place of its line: CLAIM in line-backend.ts.
local CLAIM = 1000

-- The terms of a place that is told when it may read.
local READS = 't read'

-- How many hold a lock, or nil if it is held as one that n may not hold.
local function permitHolderCount(lock, now)
  local kind = typeOf(lock)
  return kind == 'none' and 0 or kind == 'zset' and redis.call('ZCOUNT', lock, '(' .. now, '+inf') or nil
end

local function hasPermit(held, lapse)
  return held and held < math.max(1, lapse % 1 / PERMIT)
end

-- Whether a lock has room for a place that lapses at this time, and has these terms: a permit, the whole lock, or room
-- beside its readers.
local function hasRoom(lock, lapse, now, terms)
  local held = permitHolderCount(lock, now)
  return hasPermit(held, lapse) or not held and terms == READS and redis.call('HGET', lock, 'mode') == 'read'
end

-- How many places are looked at for whether there is room for them.
local MOST_PLACES = 128

-- Grants permits to the places in front, in their order, by `tell(owner, message)`. A place that wants a smaller n may have
-- no room where one behind it has. Returns whether it granted any.
local function grantPermits(lock, places, lapses, terms, now, tell)
  local isGranted, held = false, permitHolderCount(lock, now)
  for _, place in ipairs(redis.call('ZRANGE', places, 0, MOST_PLACES - 1)) do
    local lapse = tonumber(redis.call('ZSCORE', lapses, place) or 0)
    if lapse > now and lapse % 1 == 0 then
      break
    end
    if lapse > now and hasPermit(held, lapse) then
      redis.call('ZADD', lock, now + CLAIM, place)
      if redis.call('PTTL', lock) < CLAIM then
        redis.call('PEXPIRE', lock, CLAIM)
      end
      leaveLine(places, lapses, terms, place)
      tell(place, place .. ' granted')
      isGranted, held = true, permitHolderCount(lock, now)
    end
  end
  return isGranted
end
