-- Remembers a request that gives something back or ends something, which must not be lost because the server's memory is
-- full. To delete the request before it takes no memory either.
local function rememberAlthoughFull(latest, sequence, answer, lifetime)
  if not writeUnlessFull('SET', latest, sequence .. ':' .. answer, 'PX', lifetime) then
    redis.call('DEL', latest)
    rememberRequest(latest, sequence, answer, lifetime)
  end
end
