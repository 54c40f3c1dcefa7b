local function isWriter(lock, owner)
  return hasField(lock, owner .. ':write')
end
