-- Releases a lease.
--
-- KEYS[1]  lease
-- ARGV[1]  holder
-- Returns 1 if the lease was held by this holder, else 0.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
