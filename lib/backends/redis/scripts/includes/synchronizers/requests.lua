-- `latest` stores the latest request of a session of a client as `<sequence>:<answer>`. A client sends the next request
-- of a session when it knows the answer to the last one. So a request with the same sequence number is a repetition,
-- and one with a lower number is a delayed copy.
local function latestRequest(latest)
  local sequence, answer = string.match(redis.call('GET', latest) or '', '^(%d+):(.*)$')
  return tonumber(sequence or 0), answer
end

-- The answer to a request that was already executed, or nil if it was not.
local function earlierAnswer(latest, sequence)
  local last, answer = latestRequest(latest)
  return last >= tonumber(sequence) and answer or nil
end
