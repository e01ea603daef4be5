-- A node joins, renews its standing, or leaves; and nodes whose lease ended are declared dead.
--
-- KEYS  nodes, gone nodes, what nodes say of themselves
-- ARGV  join, renew or leave; incarnation; its lease (ms); what it says of itself
--       1 if it may declare others dead, else 0; how long gone nodes are remembered (ms)
--       then the others whom it has seen stand still for as long as a lease, and the end of the lease it has seen, in turn
-- Returns 1 if it is a node, else 0; the nodes whose lease holds, and the ends of their leases in turn; the same of those
-- whose lease ended and who are not declared dead; the gone nodes

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local nodes, gone, info = KEYS[1], KEYS[2], KEYS[3]
local change, incarnation, lease_ms, says = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local may_judge, remember_ms = ARGV[5] == '1', tonumber(ARGV[6])

local function whole(number)
  return string.format('%.0f', number)
end

local function bury(node)
  redis.call('ZREM', nodes, node)
  redis.call('HDEL', info, node)
  redis.call('ZADD', gone, whole(now_ms), node)
end

if change == 'join' and redis.call('ZCOUNT', nodes, '(' .. whole(now_ms), '+inf') == 0 then
  -- Nobody was there to look after those who went: they are remembered from now on.
  for _, node in ipairs(redis.call('ZRANGE', gone, 0, -1)) do
    redis.call('ZADD', gone, whole(now_ms), node)
  end
end

local is_member = 0
if change == 'leave' then
  bury(incarnation)
elseif not redis.call('ZSCORE', gone, incarnation) then
  redis.call('ZADD', nodes, whole(now_ms + lease_ms), incarnation)
  redis.call('HSET', info, incarnation, says)
  is_member = 1
end
if may_judge and is_member == 1 then
  -- Not the lease alone: the clock of a server may be set forward, or another server with another clock take over.
  for at = 7, #ARGV, 2 do
    local till = redis.call('ZSCORE', nodes, ARGV[at])
    if till and till == ARGV[at + 1] and tonumber(till) <= now_ms then
      bury(ARGV[at])
    end
  end
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', whole(now_ms - remember_ms))
end
return {
  is_member,
  redis.call('ZRANGEBYSCORE', nodes, '(' .. whole(now_ms), '+inf', 'WITHSCORES'),
  redis.call('ZRANGEBYSCORE', nodes, '-inf', whole(now_ms), 'WITHSCORES'),
  redis.call('ZRANGE', gone, 0, -1),
}
