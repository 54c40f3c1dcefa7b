-- Whether a field of a lock's hash may be an owner: `<client>:<number>`, or `<client>:t-<hex>` for a detached lease.
local function isOwner(field)
  return #field <= 200
    and (string.find(field, '^[^:{}%c]+:%d+$') or string.find(field, '^[^:{}%c]+:t%-%x+$')) ~= nil
end
