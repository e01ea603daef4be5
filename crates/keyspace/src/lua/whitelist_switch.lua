-- Replaces the whitelist by a newly built set (W2). The previous whitelist is kept for one undo.
--
-- KEYS[1]  whitelist (set)
-- KEYS[2]  previous whitelist (set), which is replaced
-- KEYS[3]  newly built set
-- KEYS[4]  last change (hash)
-- ARGV[1]  token of this refresh
-- ARGV[2]  expected number of members of KEYS[3]
-- Returns the number of members of the whitelist before and after; nil if KEYS[3] has another number of members.

-- Everything that can fail is checked before the first write, so that no switch is partial.
for at = 1, 3 do
  local type = redis.call('TYPE', KEYS[at]).ok
  if type ~= 'set' and type ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[at] .. ' holds a ' .. type .. ', not a set')
  end
end

-- This refresh was already applied, but its answer was lost.
local last = redis.call('HMGET', KEYS[4], 'token', 'before', 'after')
if last[1] == ARGV[1] then
  return {tonumber(last[2]), tonumber(last[3])}
end

local before, after = redis.call('SCARD', KEYS[1]), redis.call('SCARD', KEYS[3])
if after ~= tonumber(ARGV[2]) then
  return false
end

-- UNLINK frees in the background; RENAME over a large set would free it synchronously and block Redis.
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
