--[[
  Reads the time of the server that serves a key.

  KEYS[1]  any key of that server

  Returns { seconds since 1970, µs }.
]]
return redis.call('TIME')
