-- Looks what is due in one shard, a bounded number.
--
-- KEYS  the sets of one shard
-- ARGV  the most people in all, then for each set: all, if everybody in it is due; or late, if those are whose time came
-- Returns for each set that has any: its place among the KEYS, then persons and scores in turn

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local room, replies = tonumber(ARGV[1]), {}
for place, key in ipairs(KEYS) do
  if room <= 0 then
    break
  end
  local till = ARGV[place + 1] == 'all' and '+inf' or string.format('%.0f', now_ms)
  -- A key that holds something else does not keep the others from being looked at.
  local due = redis.pcall('ZRANGEBYSCORE', key, '-inf', till, 'WITHSCORES', 'LIMIT', 0, room)
  if not due.err and #due > 0 then
    room = room - #due / 2
    table.insert(replies, { place, due })
  end
end
return replies
