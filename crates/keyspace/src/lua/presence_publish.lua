-- Writes one node's entry of a user. If the record changes, the versions rise and the nodes to notify are returned.
--
-- KEYS      record, watchers, presence, connection, heartbeat
-- ARGV[1]   incarnation
-- ARGV[2]   "put", "drop" (the user left), or "abandon" (remove the entry; the user becomes pending if it was the last)
-- ARGV[3]   1 if the entry must exist (its deadline may not be stored), else 0
-- ARGV[4…7] the entry (put; else empty): <highest status><online>, lifetime (s), status of each device, devices
-- ARGV[8]   age of the last activity (ms)
-- ARGV[9]   "=" to keep the declaration, "-" to remove it, or the new declaration
-- ARGV[10]  the declaration known to the node, used if there is no record or it was lost; or empty
-- ARGV[11…12] versions that must not be undercut: public, own
-- ARGV[13]  last seen (s) if the record has none, or 0
-- ARGV[14]  length of the pending period (ms)
-- ARGV[15]  how long a record is kept (ms)
-- ARGV[16]  number of this call
-- ARGV[17]  number of the first unanswered call about this user, or 0
-- ARGV[18]  former incarnations of the same process, comma-separated: their entries are removed
-- ARGV[19]  the own version known to the node, or 0
-- ARGV[20]  age of the declaration (ms)
-- ARGV[21]  time to live of the public keys unless an entry is put again (ms)
-- Returns "fenced"; "unknown" (no record); "absent" (the entry must exist and does not; nothing was written); "same" and
-- the versions; or "changed", the time (ms), the status before ("none" without a record), 1 if online before, status and
-- flag now, the record, the watching nodes.

local incarnation, change, must_exist = ARGV[1], ARGV[2], ARGV[3] == '1'
local summary, lifetime, device_statuses, devices = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local age_ms, declared, known_declaration = tonumber(ARGV[8]), ARGV[9], ARGV[10]
local floor_v, floor_o, last_seen = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local pending_ms, keep_ms, number, first_unanswered = tonumber(ARGV[14]), tonumber(ARGV[15]), ARGV[16], ARGV[17]
local former, known, declaration_age_ms = ARGV[18], tonumber(ARGV[19]), tonumber(ARGV[20])
local keys_ms = tonumber(ARGV[21])

-- An older declaration may have been overtaken by one of another node. A fresh one was not, whatever the clocks.
local DECLARATION_FRESH_MS = 5000

local record = load_record(KEYS[1])
local old = record.entries[incarnation]
if (record.fences[incarnation] or 0) > NOW_MS then
  return { 'fenced' }
end
if change == 'put' and must_exist and not old then
  return { 'absent' }
end
if not record.exists then
  if change ~= 'put' and string.len(declared) == 1 then
    return { 'unknown' }
  end
  if known_declaration ~= '' then
    record.d = known_declaration
  end
end
if record.l == 0 then
  record.l = last_seen
end

local before = view_of(record)
if not record.exists then
  before = { status = 'none', hidden = false, public = 'offline', print = '', here = false }
end
local had_pending, old_declared = record.q > 0, record.d
local is_changed = #record.malformed > 0
local sign = math.floor((NOW_MS - age_ms) / 1000)
local deleted = {}
local is_own, had_own = { [incarnation] = true }, old ~= nil
for node in string.gmatch(former, '[^,]+') do
  is_own[node] = true
  if record.entries[node] then
    had_own, is_changed = true, true
    remove_entry(record, node)
    table.insert(deleted, 'n:' .. node)
  end
end
-- Only with an own entry: then the user does not become pending, which would need a deadline first.
if (old or change == 'put') and remove_orphaned(record, incarnation, deleted) then
  is_changed = true
end
if change == 'put' then
  local deadline = NOW_MS - age_ms + tonumber(lifetime) * 1000
  local text = string.format('%s %.0f %.0f %s %s %s', summary, deadline, sign, lifetime, device_statuses, devices)
  local entry = parse_entry(text)
  if not entry then
    return redis.error_reply('ERR malformed entry')
  end
  record.entries[incarnation] = entry
  record.q, record.k = 0, NOW_MS + keys_ms
  is_changed = is_changed or not old or old.devices ~= devices or old.device_statuses ~= device_statuses
else
  remove_entry(record, incarnation)
  if change == 'drop' then
    record.a = math.max(record.a, sign)
    -- The user is pending only because this node had not reported the sign-off.
    if is_own[record.y] then
      record.q = 0
    end
  elseif had_own and not has_entries(record) then
    begin_pending(record, incarnation, pending_ms)
  end
  is_changed = is_changed or old ~= nil
  table.insert(deleted, 'n:' .. incarnation)
end
if record.exists and record.o < known then
  -- A failover lost later writes, maybe a declaration among them.
  record.d = known_declaration ~= '' and known_declaration or nil
  is_changed, floor_o = true, math.max(floor_o, known + 1)
end
if declared ~= '=' and declaration_age_ms > DECLARATION_FRESH_MS and NOW_MS - declaration_age_ms + DECLARATION_FRESH_MS < record.w then
  -- A newer declaration was made at another node; the caller learns of it by the reply.
  is_changed = true
elseif declared ~= '=' then
  record.d = declared ~= '-' and declared or nil
  record.w = NOW_MS - declaration_age_ms
end
end_declaration(record)
is_changed = is_changed or record.d ~= old_declared or had_pending ~= (record.q > 0)

-- An unanswered earlier call was applied: its change is reported with this one.
local earlier = first_unanswered ~= '0' and record.changes[incarnation] or ''
local unreported = { string.match(earlier, '^(%d+) (%l+) ([01]) %d+$') }
if unreported[1] and tonumber(unreported[1]) < tonumber(first_unanswered) then
  unreported = {}
end
local now = nil
if is_changed then
  now = settle(record, before, floor_v, floor_o)
  local was_here = unreported[3] or (before.here and '1' or '0')
  record.changes[incarnation] =
    string.format('%s %s %s %.0f', number, unreported[2] or before.status, was_here, NOW_MS)
  record.r = nil
else
  now = before
  record.v, record.o = math.max(record.v, floor_v), math.max(record.o, floor_o)
end
store(KEYS[1], record, deleted, keep_ms)
write_public_keys(record, now)
if unreported[1] then
  before = { status = unreported[2], here = unreported[3] == '1' }
elseif not is_changed then
  return { 'same', whole(record.v), whole(record.o) }
end
return changed_reply(before, record)
