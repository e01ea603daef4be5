-- A node joins, renews its lease, or leaves; nodes whose lease ended are declared dead.
--
-- KEYS[1]  sorted set: incarnation by the end of its lease (ms)
-- KEYS[2]  sorted set: dead incarnation by the time it was declared dead (ms)
-- KEYS[3]  hash: info of each incarnation
-- ARGV[1]  "join", "renew" or "leave"
-- ARGV[2]  incarnation
-- ARGV[3]  length of the lease (ms)
-- ARGV[4]  info: a small JSON about the node
-- ARGV[5]  1 if the caller may declare others dead, else 0
-- ARGV[6]  how long dead nodes are listed (ms)
-- ARGV[7…] pairs: a node that did not renew for the length of a lease by the caller's clock, and the end of its lease
-- Returns 1 if the caller is a member, else 0; alternating nodes and lease ends of valid leases; the same of ended
-- leases that are not declared dead; the dead nodes.

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local nodes, dead, info = KEYS[1], KEYS[2], KEYS[3]
local change, incarnation, lease_ms, node_info = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local may_declare_dead, remember_ms = ARGV[5] == '1', tonumber(ARGV[6])

local function whole(number)
  return string.format('%.0f', number)
end

local function declare_dead(node)
  redis.call('ZREM', nodes, node)
  redis.call('HDEL', info, node)
  redis.call('ZADD', dead, whole(now_ms), node)
end

if change == 'join' and redis.call('ZCOUNT', nodes, '(' .. whole(now_ms), '+inf') == 0 then
  -- No node was there to reap the dead ones: they are listed from now on.
  for _, node in ipairs(redis.call('ZRANGE', dead, 0, -1)) do
    redis.call('ZADD', dead, whole(now_ms), node)
  end
end

local is_member = 0
if change == 'leave' then
  declare_dead(incarnation)
elseif not redis.call('ZSCORE', dead, incarnation) then
  redis.call('ZADD', nodes, whole(now_ms + lease_ms), incarnation)
  redis.call('HSET', info, incarnation, node_info)
  is_member = 1
end
if may_declare_dead and is_member == 1 then
  -- The end of the lease alone is not enough: Redis's clock may be set forward, or differ after a failover.
  for at = 7, #ARGV, 2 do
    local till = redis.call('ZSCORE', nodes, ARGV[at])
    if till and till == ARGV[at + 1] and tonumber(till) <= now_ms then
      declare_dead(ARGV[at])
    end
  end
  redis.call('ZREMRANGEBYSCORE', dead, '-inf', whole(now_ms - remember_ms))
end
return {
  is_member,
  redis.call('ZRANGEBYSCORE', nodes, '(' .. whole(now_ms), '+inf', 'WITHSCORES'),
  redis.call('ZRANGEBYSCORE', nodes, '-inf', whole(now_ms), 'WITHSCORES'),
  redis.call('ZRANGE', dead, 0, -1),
}
