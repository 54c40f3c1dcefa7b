-- `latest` stores the latest request of a session of a client as `<sequence>:<answer>`. A client sends the next request
-- of a session when it knows the answer to the last one: the same sequence number is a repetition, a lower one a copy
-- that was delayed.
local function latestRequest(latest)
  local sequence, answer = string.match(redis.call('GET', latest) or '', '^(%d+):(.*)$')
  return tonumber(sequence or 0), answer
end

-- The answer to a request that was executed before; nil when it was not.
local function earlierAnswer(latest, sequence)
  local last, answer = latestRequest(latest)
  return last >= tonumber(sequence) and answer or nil
end
