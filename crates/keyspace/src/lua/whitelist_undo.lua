-- Exchanges the whitelist and the previous whitelist (W2).
--
-- KEYS[1]  whitelist (set)
-- KEYS[2]  previous whitelist (set)
-- KEYS[3]  unused key, for the exchange
-- KEYS[4]  last change (hash)
-- ARGV[1]  token of this call
-- Returns the number of members of the whitelist before and after; nil without a previous whitelist.

-- Everything that can fail is checked before the first write, so that no exchange is partial.
for at = 1, 2 do
  local type = redis.call('TYPE', KEYS[at]).ok
  if type ~= 'set' and type ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[at] .. ' holds a ' .. type .. ', not a set')
  end
end

-- This call was already applied, but its answer was lost.
local last = redis.call('HMGET', KEYS[4], 'token', 'before', 'after')
if last[1] == ARGV[1] then
  return {tonumber(last[2]), tonumber(last[3])}
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
