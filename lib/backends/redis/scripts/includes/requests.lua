-- `latest` remembers the latest request of a lane of a client as `<number>:<answer>`. The client sends the next one when it knows
-- the answer of the last: the same number is a repetition, a lower one a copy that was long under way.
local function latestRequest(latest)
  local number, answer = string.match(redis.call('GET', latest) or '', '^(%d+):(.*)$')
  return tonumber(number or 0), answer
end

-- The answer of a request that was executed already, else nil.
local function answered(latest, number)
  local last, answer = latestRequest(latest)
  return last >= tonumber(number) and answer or nil
end

local function remember(latest, number, answer, memory)
  redis.call('SET', latest, number .. ':' .. answer, 'PX', memory)
end
