-- Claims users that are due, so that no other sweep checks them at the same time (A4).
--
-- KEYS[1]  index of users: sorted set by the time of the next check
-- ARGV[1]  now
-- ARGV[2]  maximum number of users
-- ARGV[3]  end of the claim: not an integer, so that it differs from every other score
-- Returns the users.

local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, user in ipairs(due) do
  redis.call('ZADD', KEYS[1], ARGV[3], user)
end
return due
