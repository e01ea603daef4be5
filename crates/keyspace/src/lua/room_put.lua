-- Writes one gateway's members of a room and renews its entry in the set of gateways with members.
--
-- KEYS[1]  hash: the gateway's members by user id, and the version `v`
-- KEYS[2]  sorted set: gateways with members in the room, by expiry (ms)
-- ARGV[1]  gateway
-- ARGV[2]  time to live of both keys (ms)
-- ARGV[3]  new version
-- ARGV[4]  1 if the gateway has members in the room, 0 to delete its entry
-- ARGV[5…] pairs: user id, text of the member, or empty to remove the member
-- Returns the version before ('' for none), and all gateways with members in the room.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before = redis.call('HGET', KEYS[1], 'v') or ''
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if ARGV[4] == '1' then
  for i = 5, #ARGV, 2 do
    if ARGV[i + 1] == '' then
      redis.call('HDEL', KEYS[1], ARGV[i])
    else
      redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    end
  end
  redis.call('HSET', KEYS[1], 'v', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
else
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return {before, redis.call('ZRANGE', KEYS[2], 0, -1)}
