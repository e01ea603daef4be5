-- Moves letters from one stream to another; those that are gone already stay gone.
-- KEYS[1] the stream they leave
-- KEYS[2] the stream they go to
-- ARGV[1] the group they are acknowledged for, or empty
-- ARGV[2] 1 if they stay in the stream they leave (the traffic stream), where pending decides instead; else 0
-- ARGV[3] how many letters follow
-- then for each letter: its id, how many words its fields have, and those words
-- Returns how many were moved.

-- Nothing may be half done: what can fail is found out before the first write.
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
  -- Raises NOGROUP where there is no such group.
  redis.call('XPENDING', KEYS[1], group)
end

local function is_there(id)
  if stays then
    return group ~= '' and #redis.call('XPENDING', KEYS[1], group, id, id, 1) > 0
  end
  return #redis.call('XRANGE', KEYS[1], id, id) > 0
end

local moved, at = 0, 4
for _ = 1, tonumber(ARGV[3]) do
  local id, words = ARGV[at], tonumber(ARGV[at + 1])
  if is_there(id) then
    redis.call('XADD', KEYS[2], '*', unpack(ARGV, at + 2, at + 1 + words))
    if group ~= '' then
      redis.call('XACK', KEYS[1], group, id)
    end
    if not stays then
      redis.call('XDEL', KEYS[1], id)
    end
    moved = moved + 1
  end
  at = at + 2 + words
end
return moved
