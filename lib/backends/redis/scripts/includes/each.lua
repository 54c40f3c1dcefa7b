-- Runs `work(item)` for one item of a batch. What goes wrong with it becomes its own answer, { { error, type of each key } },
-- and does not reach the items beside it. Its keys are KEYS[first] and the `stride - 1` after it.
local function each(work, item, first, stride)
  local ok, answer = pcall(work, item)
  if ok then
    return answer
  end
  local failure = { type(answer) == 'table' and answer.err or tostring(answer) }
  for k = first, first + stride - 1 do
    failure[#failure + 1] = redis.pcall('TYPE', KEYS[k]).ok or 'unknown'
  end
  return { failure }
end
