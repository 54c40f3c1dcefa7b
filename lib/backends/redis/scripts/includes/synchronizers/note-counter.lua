-- Beside a number stands a note, for people: of which type it is, and how many permits or steps there are in all
-- (empty: not known). Redisson deletes latches without their notes, so that these expire. The calls are protected: what
-- happens to a note must not fail a change.
local DAYS_30 = 2592000000

local function noteCounter(note, kind, total)
  redis.pcall('DEL', note)
  redis.pcall('HSET', note, 'type', kind, 'total', total)
  if kind == 'count-down-latch' then
    redis.pcall('PEXPIRE', note, DAYS_30)
  end
end

-- For a number that is there already.
local function noteType(note, kind)
  if redis.pcall('HGET', note, 'type') ~= kind then
    noteCounter(note, kind, '')
  end
end
