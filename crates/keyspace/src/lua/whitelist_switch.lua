-- Makes a set that was built aside the whitelist (W2).
-- KEYS[1] the whitelist
-- KEYS[2] what it replaced last, which is forgotten for what it is replaced by now
-- KEYS[3] the set that was built
-- KEYS[4] the note of what was done last
-- ARGV[1] the token of this refresh
-- ARGV[2] how many members the set must have
-- Returns how many members the whitelist had and has; nothing if the set lost some.

-- Nothing may be half done: what can fail is found out before the first write.
for at = 1, 3 do
  local type = redis.call('TYPE', KEYS[at]).ok
  if type ~= 'set' and type ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[at] .. ' holds a ' .. type .. ', not a set')
  end
end

-- The answer got lost the last time: it is given again.
local note = redis.call('HMGET', KEYS[4], 'token', 'before', 'after')
if note[1] == ARGV[1] then
  return {tonumber(note[2]), tonumber(note[3])}
end

local before, after = redis.call('SCARD', KEYS[1]), redis.call('SCARD', KEYS[3])
if after ~= tonumber(ARGV[2]) then
  return false
end

-- Freed aside: to rename over a large set would stop Redis for as long as it takes to free it.
redis.call('UNLINK', KEYS[2])
if before > 0 then
  redis.call('RENAME', KEYS[1], KEYS[2])
end
if after > 0 then
  redis.call('PERSIST', KEYS[3])
  redis.call('RENAME', KEYS[3], KEYS[1])
end
redis.call('HSET', KEYS[4], 'token', ARGV[1], 'before', before, 'after', after)
return {before, after}
