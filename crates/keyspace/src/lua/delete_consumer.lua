-- Deletes a consumer, unless it has pending entries, which would be lost with it.
--
-- KEYS[1]  stream
-- ARGV[1]  consumer group
-- ARGV[2]  consumer
-- Returns 1 if the consumer has no pending entries, else 0.

if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then
  return 0
end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
