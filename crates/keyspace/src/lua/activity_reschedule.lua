-- Says when to look at claimed users again, or never, unless somebody else has said so since (A4).
--
-- KEYS  the index of users
-- ARGV  the end of the claim; then in turn: a user, and when to look again, or -1 for never

local claim = tonumber(ARGV[1])
for position = 2, #ARGV, 2 do
  local user, next_look = ARGV[position], ARGV[position + 1]
  if tonumber(redis.call('ZSCORE', KEYS[1], user) or -1) == claim then
    if next_look == '-1' then
      redis.call('ZREM', KEYS[1], user)
    else
      redis.call('ZADD', KEYS[1], next_look, user)
    end
  end
end
return 1
