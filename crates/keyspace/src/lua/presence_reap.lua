-- Reaps one due user: removes the entry of a dead node or an expired entry, or ends a pending period; and removes
-- orphaned entries.
--
-- KEYS     record, watchers, presence, connection, heartbeat
-- ARGV[1]  incarnation whose entry is due; empty for pending
-- ARGV[2]  "gone" (the node is dead), "late" (the deadline passed) or "pending"
-- ARGV[3]  length of the pending period (ms)
-- ARGV[4]  how long a record is kept (ms)
-- ARGV[5]  how long a fence lasts (ms)
-- ARGV[6]  incarnation of the reaping node
-- ARGV[7]  1 if an earlier call of that node for the same entry is unanswered, else 0
-- Returns "later" and the remaining time (ms); "none", the time (ms), the record and the watching nodes if nothing is
-- due; "wait" if another node has just reaped it and will notify; or as presence_publish.

local REPORT_GRACE_MS = 2000

local incarnation, kind = ARGV[1], ARGV[2]
local pending_ms, keep_ms, fence_ms = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local reaper, is_unanswered = ARGV[6], ARGV[7] == '1'
local what = kind .. ':' .. incarnation

-- A node that reaped an entry and has not notified watchers after this long is dead.
local NOTIFIED_WITHIN_MS = 10000

-- The field `r`.
local function reaped_field(status, here)
  return string.format('%s %s %s %s %.0f', reaper, what, status, here, NOW_MS)
end

local record = load_record(KEYS[1])
local entry = record.entries[incarnation]
if kind == 'pending' and record.q > NOW_MS then
  return { 'later', record.q - NOW_MS }
end
-- A live node reports a silent device itself at the deadline, without a pending period: it gets time for that.
if kind == 'late' and entry and entry.deadline + REPORT_GRACE_MS > NOW_MS then
  return { 'later', entry.deadline + REPORT_GRACE_MS - NOW_MS }
end
local before = view_of(record)
local deleted = {}
local last = nil
if kind == 'pending' or entry then
  last = remove_orphaned(record, incarnation, deleted)
end
if entry then
  remove_entry(record, incarnation)
  table.insert(deleted, 'n:' .. incarnation)
  last = incarnation
  if kind == 'gone' then
    record.fences[incarnation] = NOW_MS + fence_ms
  end
end
if last and not has_entries(record) then
  begin_pending(record, last, pending_ms)
elseif not last and kind == 'pending' and record.q > 0 then
  record.q = 0
elseif not last then
  local reaped_by, done, status, here, at = string.match(record.r or '', '^(%S+) (%S+) (%l+) ([01]) (%d+)$')
  if done == what and reaped_by ~= reaper and math.abs(NOW_MS - tonumber(at)) < NOTIFIED_WITHIN_MS then
    return { 'wait' }
  end
  -- Still due: the node that reaped it may have died before it notified watchers.
  if done == what and (reaped_by ~= reaper or is_unanswered) then
    redis.call('HSET', KEYS[1], 'r', reaped_field(status, here))
    return changed_reply({ status = status, here = here == '1' }, record)
  end
  return { 'none', NOW_MS, redis.call('HGETALL', KEYS[1]), watchers_of(KEYS[2]) }
end
end_declaration(record)
local now = settle(record, before, 0, 0)
record.r = reaped_field(before.status, before.here and '1' or '0')
store(KEYS[1], record, deleted, keep_ms)
write_public_keys(record, now)
return changed_reply(before, record)
