-- Exchanges the whitelist and what the last refresh replaced (W2).
-- KEYS[1] the whitelist
-- KEYS[2] what the last refresh replaced
-- KEYS[3] a name that nobody uses
-- KEYS[4] the note of what was done last
-- ARGV[1] the token of this call
-- Returns how many members the whitelist had and has; nothing if there is nothing to go back to.

-- Nothing may be half done: what can fail is found out before the first write.
for at = 1, 2 do
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

local before, after = redis.call('SCARD', KEYS[1]), redis.call('SCARD', KEYS[2])
if after == 0 then
  return false
end
redis.call('RENAME', KEYS[2], KEYS[3])
if before > 0 then
  redis.call('RENAME', KEYS[1], KEYS[2])
end
redis.call('RENAME', KEYS[3], KEYS[1])
redis.call('HSET', KEYS[4], 'token', ARGV[1], 'before', before, 'after', after)
return {before, after}
