-- Looks what is due in one shard, a bounded number.
--
-- KEYS  the sets of one shard
-- ARGV  the most people of each kind, then for each set its kind: all, if everybody in it is due; late or pending, if those
--       are whose time came.
-- Returns for each set that has any: its place among the KEYS, then persons and scores in turn

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local most, replies = tonumber(ARGV[1]), {}
local room = { all = most, late = most, pending = most }
for place, key in ipairs(KEYS) do
  local kind = ARGV[place + 1]
  local till = kind == 'all' and '+inf' or string.format('%.0f', now_ms)
  -- A key that holds something else does not keep the others from being looked at.
  local due = redis.pcall('ZRANGEBYSCORE', key, '-inf', till, 'WITHSCORES', 'LIMIT', 0, room[kind])
  if not due.err and #due > 0 then
    room[kind] = room[kind] - #due / 2
    table.insert(replies, { place, due })
  end
end
return replies
