-- Runs a command that a server takes although its memory is full. `zset`: any zset that the script may write; it need not
-- exist.
local function writeAlthoughFull(zset, ...)
  if not writeUnlessFull(...) then
    openFullMemory(zset)
    redis.call(...)
  end
end
