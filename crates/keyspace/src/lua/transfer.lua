-- Moves entries from one stream to another. Entries that no longer exist are skipped.
--
-- KEYS[1]  source stream
-- KEYS[2]  target stream
-- ARGV[1]  consumer group to acknowledge for, or empty
-- ARGV[2]  1 if entries stay in the source (the traffic stream): only those pending in the group are copied; else 0
-- ARGV[3]  number of entries
-- ARGV[4…] for each entry: id, number of arguments for its fields, names and values of its fields
-- Returns the number of moved entries.

-- Everything that can fail is checked before the first write, so that no move is partial.
for _, key in ipairs(KEYS) do
  local type = redis.call('TYPE', key).ok
  if type ~= 'stream' and type ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' holds a ' .. type .. ', not a stream')
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end

local group, stays = ARGV[1], ARGV[2] == '1'
if group ~= '' then
  -- Raises NOGROUP if the group does not exist.
  redis.call('XPENDING', KEYS[1], group)
end

local function can_move(id)
  if stays then
    return group ~= '' and #redis.call('XPENDING', KEYS[1], group, id, id, 1) > 0
  end
  return #redis.call('XRANGE', KEYS[1], id, id) > 0
end

local moved, at = 0, 4
for _ = 1, tonumber(ARGV[3]) do
  local id, count = ARGV[at], tonumber(ARGV[at + 1])
  if can_move(id) then
    redis.call('XADD', KEYS[2], '*', unpack(ARGV, at + 2, at + 1 + count))
    if group ~= '' then
      redis.call('XACK', KEYS[1], group, id)
    end
    if not stays then
      redis.call('XDEL', KEYS[1], id)
    end
    moved = moved + 1
  end
  at = at + 2 + count
end
return moved
