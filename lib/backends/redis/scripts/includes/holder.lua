-- An owner that is in the lock, whatever its type.
local function holderOf(lock)
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    if field ~= 'mode' then
      return (string.gsub(field, ':write$', ''))
    end
  end
  return ''
end
