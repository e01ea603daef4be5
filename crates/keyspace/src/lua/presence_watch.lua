-- Notes that a node is interested in a person, then reads what is known.
--
-- KEYS  record, watchers
-- ARGV  incarnation; for how long it is interested (ms), 0 for not at all; the own version that it knows, 0 for none
-- Returns unknown; same, and in how many ms the first of the other nodes' parts or the pending is due, -1 if there are
-- none; or record, the time (ms), the record

local incarnation, interest_ms, known = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if interest_ms > 0 then
  redis.call('ZADD', KEYS[2], whole(NOW_MS + interest_ms), incarnation)
  redis.call('PEXPIRE', KEYS[2], interest_ms)
end
if known > 0 and tonumber(redis.call('HGET', KEYS[1], 'o') or 0) == known then
  local record, remaining = load_record(KEYS[1]), -1
  for node, part in pairs(record.parts) do
    local left = math.max(part.deadline - NOW_MS, 0)
    if node ~= incarnation and (remaining < 0 or left < remaining) then
      remaining = left
    end
  end
  if remaining < 0 and record.q > 0 then
    remaining = math.max(record.q - NOW_MS, 0)
  end
  return { 'same', remaining }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat == 0 then
  return { 'unknown' }
end
return { 'record', NOW_MS, flat }
