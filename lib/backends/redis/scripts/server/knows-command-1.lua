--[[
  Checks whether the server that serves a key knows a command. (Some managed clusters refuse scripts without a key.)

  KEYS[1]  any key of that server

  ARGV[1]  command

  Returns 1 or 0.
]]
return redis.call('COMMAND', 'INFO', ARGV[1])[1] and 1 or 0
