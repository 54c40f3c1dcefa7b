--[[
  Asks whether the server knows a command.

  ARGV[1]  command

  Returns 1 or 0.
]]
return redis.call('COMMAND', 'INFO', ARGV[1])[1] and 1 or 0
