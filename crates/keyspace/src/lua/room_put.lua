-- Writes whom one gateway has in a room, and renews that it has somebody in it.
-- KEYS[1] hash: the gateway's part of the room, by user id, and its version `v`
-- KEYS[2] sorted set: gateways with somebody in the room, until when (ms)
-- ARGV[1] the gateway
-- ARGV[2] for how many milliseconds this holds
-- ARGV[3] the version of the part from now on
-- ARGV[4] 1 if somebody is in the room there, 0 if the part is to go
-- ARGV[5…] pairs: a user id, and what is written of them; empty if they are not there
-- Returns the version before ('' if there was none), and all gateways with somebody in the room.
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
