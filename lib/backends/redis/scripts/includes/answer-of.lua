-- Runs `work(item, first)` for one item of a batch and returns its answer. An error becomes the answer of only this item:
-- { { error, type of each key } }. The keys of the item are KEYS[first] and the `count - 1` after it. On a replica, the
-- whole script fails, because every item would, and nothing was written.
local function answerOf(work, item, first, count)
  local ok, answer = pcall(work, item, first)
  if ok then
    return answer
  end
  local message = type(answer) == 'table' and answer.err or tostring(answer)
  if string.find(message, 'READONLY', 1, true) then
    error(message, 0)
  end
  local failure = { message }
  for k = first, first + count - 1 do
    failure[#failure + 1] = redis.pcall('TYPE', KEYS[k]).ok or 'unknown'
  end
  return { failure }
end
