-- Sets the next check of claimed users whose score is still the claim (A4).
--
-- KEYS[1]  index of users: sorted set by the time of the next check
-- ARGV[1]  end of the claim
-- ARGV[2…] pairs: user, time of the next check, or -1 to remove the user from the index
-- Returns 1.

local claim = tonumber(ARGV[1])
for position = 2, #ARGV, 2 do
  local user, next_check = ARGV[position], ARGV[position + 1]
  if tonumber(redis.call('ZSCORE', KEYS[1], user) or -1) == claim then
    if next_check == '-1' then
      redis.call('ZREM', KEYS[1], user)
    else
      redis.call('ZADD', KEYS[1], next_check, user)
    end
  end
end
return 1
