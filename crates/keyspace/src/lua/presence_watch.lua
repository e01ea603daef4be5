-- Registers a node as watcher of a user, then reads the record.
--
-- KEYS[1]  record
-- KEYS[2]  sorted set: watching incarnation by the end of its interest (ms)
-- ARGV[1]  incarnation
-- ARGV[2]  length of the interest (ms); 0 to read without watching
-- ARGV[3]  the own version that the node knows; 0 for none
-- Returns "unknown" (no record); "same" and alternating nodes and remaining validity (ms, negative if expired) of the
-- other nodes' entries; or "record", the time (ms), the record.

local incarnation, interest_ms, known = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if interest_ms > 0 then
  redis.call('ZADD', KEYS[2], whole(NOW_MS + interest_ms), incarnation)
  redis.call('PEXPIRE', KEYS[2], interest_ms)
end
if known > 0 and tonumber(redis.call('HGET', KEYS[1], 'o') or 0) == known then
  local others = {}
  for node, entry in pairs(load_record(KEYS[1]).entries) do
    if node ~= incarnation then
      table.insert(others, node)
      table.insert(others, whole(entry.deadline - NOW_MS))
    end
  end
  return { 'same', others }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat == 0 then
  return { 'unknown' }
end
return { 'record', NOW_MS, flat }
