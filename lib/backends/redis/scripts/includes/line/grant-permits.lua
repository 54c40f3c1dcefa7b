-- For how many ms a lock is granted to the first place of its line: CLAIM in line-backend.ts.
local CLAIM = 1000

-- A place that wants a lock which n may hold notes n in the time at which it lapses: as a fraction, in 2048ths of a ms.
local PERMIT = 1 / 2048

-- The terms of a place that is told when it may read.
local READS = 't read'

-- Whether a lock has room for a place that lapses at this time, and has these terms: a permit, the whole lock, or room
-- beside its readers.
local function hasRoom(lock, lapse, now, terms)
  if terms == READS and redis.pcall('HGET', lock, 'mode') == 'read' then
    return true
  end
  local held = redis.pcall('ZCOUNT', lock, '(' .. now, '+inf')
  return type(held) == 'number' and held < math.max(1, lapse % 1 / PERMIT)
end

-- Grants permits to the first places of a line as long as there is room, by `tell(owner, message)`. The first one is only
-- told if there is none.
local function grantPermits(lock, places, lapses, terms, now, tell)
  local first, lapse = firstInLine(places, lapses, terms, now)
  if not hasRoom(lock, lapse, now) then
    return tell(first, first)
  end
  while first and lapse % 1 > 0 and hasRoom(lock, lapse, now) do
    redis.call('ZADD', lock, now + CLAIM, first)
    if redis.call('PTTL', lock) < CLAIM then
      redis.call('PEXPIRE', lock, CLAIM)
    end
    leaveLine(places, lapses, terms, first)
    tell(first, first .. ' granted')
    first, lapse = firstInLine(places, lapses, terms, now)
  end
end
