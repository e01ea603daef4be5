-- Claims pending entries of one consumer for another. Entries that were deleted from the stream are acknowledged instead.
--
-- KEYS[1]  stream
-- ARGV[1]  consumer group
-- ARGV[2]  consumer that has the entries
-- ARGV[3]  consumer that gets them
-- ARGV[4]  maximum number of entries
-- Returns the entries, oldest first; none only if none is left.

while true do
  local ids = {}
  for _, pending in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[4], ARGV[2])) do
    ids[#ids + 1] = pending[1]
  end
  if #ids == 0 then
    return {}
  end

  local entries, exists = {}, {}
  for _, entry in ipairs(redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, unpack(ids))) do
    if entry then
      entries[#entries + 1] = entry
      exists[entry[1]] = true
    end
  end
  for _, id in ipairs(ids) do
    if not exists[id] then
      redis.call('XACK', KEYS[1], ARGV[1], id)
    end
  end
  if #entries > 0 then
    return entries
  end
end
