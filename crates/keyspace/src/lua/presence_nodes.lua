-- A node joins, renews its standing, or leaves; and nodes whose lease ended are declared dead.
--
-- KEYS  nodes, gone nodes, what nodes say of themselves
-- ARGV  join, renew or leave; incarnation; its lease (ms); what it says of itself
--       1 if it may declare others dead, else 0; how long gone nodes are remembered (ms)
-- Returns 1 if it is a node, else 0; the nodes whose lease holds; those whose lease ended and who are not declared dead;
-- the gone nodes

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
  for _, node in ipairs(redis.call('ZRANGEBYSCORE', nodes, '-inf', whole(now_ms))) do
    bury(node)
  end
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', whole(now_ms - remember_ms))
end
return {
  is_member,
  redis.call('ZRANGEBYSCORE', nodes, '(' .. whole(now_ms), '+inf'),
  redis.call('ZRANGEBYSCORE', nodes, '-inf', whole(now_ms)),
  redis.call('ZRANGE', gone, 0, -1),
}
