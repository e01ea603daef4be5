-- Takes or renews a lease.
--
-- KEYS[1]  lease
-- ARGV[1]  holder
-- ARGV[2]  length (ms)
-- Returns 1 if the lease is now held by this holder, 0 if another one holds it.

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
