-- Clears up what is due of a person: the part of a node that is gone or let its deadline pass, or a pending that is over;
-- and with it parts that are long over and of which nothing says any more that they are due.
--
-- KEYS  record, watchers, presence, connection, heartbeat
-- ARGV  incarnation (or empty, for pending); gone, late or pending
--       how long pending lasts (ms); how long a record is kept (ms); how long a fence lasts (ms)
-- Returns later, and in how many ms; none, the time (ms), the record, who is interested, if there is nothing to clear
-- up; or as presence_publish

local OWN_WORD_MS = 2000

local incarnation, kind = ARGV[1], ARGV[2]
local pending_ms, keep_ms, fence_ms = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local record = load_record(KEYS[1])
local part = record.parts[incarnation]
if kind == 'pending' and record.q > NOW_MS then
  return { 'later', record.q - NOW_MS }
end
-- A node that lives says itself at the deadline that a device was silent, and that is no pending: it gets its time.
if kind == 'late' and part and part.deadline + OWN_WORD_MS > NOW_MS then
  return { 'later', part.deadline + OWN_WORD_MS - NOW_MS }
end
local before = glimpse(record)
local gone = {}
local last = nil
if kind == 'pending' or part then
  last = take_out_lost(record, incarnation, gone)
end
if part then
  take_out(record, incarnation)
  table.insert(gone, 'n:' .. incarnation)
  last = incarnation
  if kind == 'gone' then
    record.fences[incarnation] = NOW_MS + fence_ms
  end
end
if last and not has_parts(record) then
  begin_pending(record, last, pending_ms)
elseif not last and kind == 'pending' and record.q > 0 then
  record.q = 0
elseif not last then
  return { 'none', NOW_MS, redis.call('HGETALL', KEYS[1]), watchers_of(KEYS[2]) }
end
end_declaration(record)
local now = settle(record, before, 0, 0)
record.z = nil
store(KEYS[1], record, gone, keep_ms)
show(record, now, before)
return changed_reply(before, record)
