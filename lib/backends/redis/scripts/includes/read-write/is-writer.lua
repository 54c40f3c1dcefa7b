local function isWriter(lock, owner)
  return redis.call('HEXISTS', lock, owner .. ':write') == 1
end
