-- Acknowledges and deletes entries. A script instead of a transaction: Redis out of memory refuses every transaction,
-- and that is when deleting helps.
--
-- KEYS[1]  stream
-- ARGV[1]  consumer group to acknowledge for, or empty
-- ARGV[2…] entry ids
-- Returns the number of deleted entries.

local ids = {unpack(ARGV, 2)}
if ARGV[1] ~= '' then
  redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
end
return redis.call('XDEL', KEYS[1], unpack(ids))
