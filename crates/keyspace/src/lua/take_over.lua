-- Makes pending entries of one consumer those of another, and gives them, oldest first. Entries that were deleted
-- meanwhile are acknowledged, not given. Returns nothing only if none are left.
-- KEYS[1] the stream
-- ARGV[1] the group
-- ARGV[2] the consumer they were given to
-- ARGV[3] the consumer they are given to
-- ARGV[4] how many at most
while true do
  local ids = {}
  for _, pending in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[4], ARGV[2])) do
    ids[#ids + 1] = pending[1]
  end
  if #ids == 0 then
    return {}
  end

  local entries, is_there = {}, {}
  for _, entry in ipairs(redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, unpack(ids))) do
    if entry then
      entries[#entries + 1] = entry
      is_there[entry[1]] = true
    end
  end
  for _, id in ipairs(ids) do
    if not is_there[id] then
      redis.call('XACK', KEYS[1], ARGV[1], id)
    end
  end
  if #entries > 0 then
    return entries
  end
end
