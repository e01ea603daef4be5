-- Reads the due users of one shard, a bounded number.
--
-- KEYS     the deadline sets of one shard
-- ARGV[1]  the maximum number of users of each kind
-- ARGV[2…] the kind of each set: "all" if all its members are due; "late" or "pending" if those with a past deadline are
-- Returns for each set with due members its index in KEYS, and alternating user ids and scores.

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local users_max, replies = tonumber(ARGV[1]), {}
local remaining = { all = users_max, late = users_max, pending = users_max }
for index, key in ipairs(KEYS) do
  local kind = ARGV[index + 1]
  local till = kind == 'all' and '+inf' or string.format('%.0f', now_ms)
  -- A key of the wrong type does not stop the other sets.
  local due = redis.pcall('ZRANGEBYSCORE', key, '-inf', till, 'WITHSCORES', 'LIMIT', 0, remaining[kind])
  if not due.err and #due > 0 then
    remaining[kind] = remaining[kind] - #due / 2
    table.insert(replies, { index, due })
  end
end
return replies
