-- Takes users who are due from the index, so that no other sweep looks at them at the same time (A4).
--
-- KEYS  the index of users
-- ARGV  now; the most users; when a claim ends, should whoever has it die: no whole number, so that it differs from
--       every other score
-- Returns the users

local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, user in ipairs(due) do
  redis.call('ZADD', KEYS[1], ARGV[3], user)
end
return due
