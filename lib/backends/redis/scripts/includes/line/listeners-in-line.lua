-- Whether this server counts all who listen. A node of a cluster, where each slot has a clock, counts only its own clients
-- unless messages are sharded. Without a clock, nothing is granted, so it does not matter.
local function countsAll(publish, clock)
  return publish == 'SPUBLISH' or not clock or clock == 'nestjs_redis_lock_clock'
end

local function channelInLine(line, owner)
  return prefixed('nestjs_redis_lock_turn', line.lock) .. ':' .. (string.match(owner, '^(.*):') or owner)
end

-- How many clients listen for each of these places: { channel, count, ... }, or nil if the server does not say.
local function listenersInLine(line, publish, clock, owners)
  if not countsAll(publish, clock) then
    return nil
  end
  local channels = {}
  for i, owner in ipairs(owners) do
    channels[i] = channelInLine(line, owner)
  end
  local counts = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', unpack(channels))
  return not counts.err and counts or nil
end
