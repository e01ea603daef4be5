-- Adds users to a deadline set, moves their deadlines, or removes them.
--
-- KEYS[1]  sorted set: user id by deadline (ms)
-- ARGV[1]  time to live of the set (ms)
-- ARGV[2…] triples: "add", user id, time until the deadline (ms)
--          or "move", likewise, unless the member is gone
--          or "remove", user id, the score that the member must have
-- Returns for each triple the score that was set, or the number of removed members.

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local replies = {}
for at = 2, #ARGV, 3 do
  local change, user, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if change == 'add' or change == 'move' then
    local score = string.format('%.0f', now_ms + tonumber(value))
    if change == 'add' or redis.call('ZSCORE', KEYS[1], user) then
      redis.call('ZADD', KEYS[1], score, user)
    end
    table.insert(replies, score)
  else
    local score = redis.call('ZSCORE', KEYS[1], user)
    local is_same = score and tonumber(score) == tonumber(value)
    table.insert(replies, is_same and redis.call('ZREM', KEYS[1], user) or 0)
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return replies
