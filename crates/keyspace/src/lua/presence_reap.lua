-- Clears up what is due of a person: the part of a node that is gone or let its deadline pass, or a pending that is over;
-- and with it parts that are long over and of which nothing says any more that they are due.
--
-- KEYS  record, watchers, presence, connection, heartbeat
-- ARGV  incarnation (or empty, for pending); gone, late or pending
--       how long pending lasts (ms); how long a record is kept (ms); how long a fence lasts (ms)
--       the incarnation that clears up; 1 if an earlier call of its for the same was not answered, else 0
-- Returns later, and in how many ms; none, the time (ms), the record, who is interested, if there is nothing to clear
-- up; wait, if another has just cleared it up and will say so; or as presence_publish

local OWN_WORD_MS = 2000

local incarnation, kind = ARGV[1], ARGV[2]
local pending_ms, keep_ms, fence_ms = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local reaper, is_doubted = ARGV[6], ARGV[7] == '1'
local what = kind .. ':' .. incarnation

-- Whoever has cleared something up, and has not said so after this long, never will.
local SAID_WITHIN_MS = 10000

-- What was cleared up, by whom, and what they were before.
local function note_cleared(status, here)
  return string.format('%s %s %s %s %.0f', reaper, what, status, here, NOW_MS)
end

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
  local who, done, status, here, at = string.match(record.r or '', '^(%S+) (%S+) (%l+) ([01]) (%d+)$')
  if done == what and who ~= reaper and math.abs(NOW_MS - tonumber(at)) < SAID_WITHIN_MS then
    return { 'wait' }
  end
  -- It is still due, so whoever cleared it up may have died before it could say what changed.
  if done == what and (who ~= reaper or is_doubted) then
    redis.call('HSET', KEYS[1], 'r', note_cleared(status, here))
    return changed_reply({ status = status, here = here == '1' }, record)
  end
  return { 'none', NOW_MS, redis.call('HGETALL', KEYS[1]), watchers_of(KEYS[2]) }
end
end_declaration(record)
local now = settle(record, before, 0, 0)
record.r = note_cleared(before.status, before.here and '1' or '0')
store(KEYS[1], record, gone, keep_ms)
show(record, now, before)
return changed_reply(before, record)
