-- Deletes entries and acknowledges them. A script and no transaction, since Redis refuses every transaction when it is
-- out of memory, which is when deleting helps.
-- KEYS[1] the stream
-- ARGV[1] the group they are acknowledged for, or empty
-- ARGV[2] and further: the ids
-- Returns how many there were.
local ids = {unpack(ARGV, 2)}
if ARGV[1] ~= '' then
  redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
end
return redis.call('XDEL', KEYS[1], unpack(ids))
