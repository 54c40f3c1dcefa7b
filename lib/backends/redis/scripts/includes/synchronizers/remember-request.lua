local function rememberRequest(latest, sequence, answer, lifetime)
  redis.call('SET', latest, sequence .. ':' .. answer, 'PX', lifetime)
end
