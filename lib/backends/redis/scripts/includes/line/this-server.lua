-- The address of a table of this server. Another server, such as a replica that has become the master, has another one.
local function thisServer()
  return string.match(tostring(redis), '%S+$')
end
