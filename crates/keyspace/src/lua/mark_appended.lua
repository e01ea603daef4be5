-- Records the number of the batch that the same transaction has just appended, unless the append failed because the key
-- is not a stream.
--
-- KEYS[1]  stream
-- KEYS[2]  number of the producer's last batch
-- ARGV[1]  number of the batch
-- ARGV[2]  time to live of KEYS[2] (s)
-- Returns 1.

if redis.call('TYPE', KEYS[1]).ok == 'stream' then
  redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
end
return 1
