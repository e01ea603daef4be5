-- Forgets a consumer, unless entries are pending for it: these would be forgotten with it.
-- KEYS[1] the stream
-- ARGV[1] the group
-- ARGV[2] the consumer
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then
  return 0
end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
