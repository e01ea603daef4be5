-- Notes when people of one shard are due, or that they are not any more.
--
-- KEYS  the set
-- ARGV  how long the set is kept without a word (ms), then for each: add, the person, in how many ms;
--       or remove, the person, the score that it must still have
-- Returns for each the score that was set, or how many were removed

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local replies = {}
for at = 2, #ARGV, 3 do
  local change, person, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if change == 'add' then
    local score = string.format('%.0f', now_ms + tonumber(value))
    redis.call('ZADD', KEYS[1], score, person)
    table.insert(replies, score)
  else
    local score = redis.call('ZSCORE', KEYS[1], person)
    local is_same = score and tonumber(score) == tonumber(value)
    table.insert(replies, is_same and redis.call('ZREM', KEYS[1], person) or 0)
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return replies
