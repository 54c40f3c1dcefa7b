-- Each number has a note for people to read. It says the type and the total number of permits or steps (empty: not
-- known). Notes expire, because Redisson deletes latches without their notes. The calls are protected, because a
-- failure to write the note must not fail a change.
local DAYS_30 = 2592000000

local function noteCounter(note, kind, total)
  redis.pcall('DEL', note)
  redis.pcall('HSET', note, 'type', kind, 'total', total)
  if kind == 'count-down-latch' then
    redis.pcall('PEXPIRE', note, DAYS_30)
  end
end

-- Writes the type of a number that already exists.
local function noteType(note, kind)
  if redis.pcall('HGET', note, 'type') ~= kind then
    noteCounter(note, kind, '')
  end
end
