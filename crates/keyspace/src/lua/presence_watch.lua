-- Notes that a node is interested in a person, then reads what is known.
--
-- KEYS  record, watchers
-- ARGV  incarnation; for how long it is interested (ms), 0 for not at all; the own version that it knows, 0 for none
-- Returns unknown; same, and of each other node's part whose it is and in how many ms it is due (less than 0 if it was);
-- or record, the time (ms), the record

local incarnation, interest_ms, known = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if interest_ms > 0 then
  redis.call('ZADD', KEYS[2], whole(NOW_MS + interest_ms), incarnation)
  redis.call('PEXPIRE', KEYS[2], interest_ms)
end
if known > 0 and tonumber(redis.call('HGET', KEYS[1], 'o') or 0) == known then
  local others = {}
  for node, part in pairs(load_record(KEYS[1]).parts) do
    if node ~= incarnation then
      table.insert(others, node)
      table.insert(others, whole(part.deadline - NOW_MS))
    end
  end
  return { 'same', others }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat == 0 then
  return { 'unknown' }
end
return { 'record', NOW_MS, flat }
