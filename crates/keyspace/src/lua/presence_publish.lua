-- Writes one node's part of a person. If that changes anything, versions rise and it says who is to be told.
--
-- KEYS  record, watchers, presence, connection, heartbeat
-- ARGV  incarnation; put, drop or behind
--       1 if the part must be there already (its place among what is due is not sure), else 0
--       the part as <best><online>, gone in (s), what each device said, devices (put; else empty)
--       how long ago the last sign of life was (ms)
--       = to leave the declaration, - to clear it, or the declaration
--       what is believed to be declared, if there is no record or it has lost something; or empty
--       versions that may not be gone below: public, own; last seen (s) if the record does not say, or 0
--       how long pending lasts (ms); how long a record is kept (ms); the number of this call
--       the number of the first call about this person that was not answered since one was, or 0
--       what the same process was called before, with commas between: those parts go
--       the own version that this node has taken in, or 0; how long ago it was declared (ms)
-- Returns fenced; unknown; absent (and nothing was written) if the part must be there and is not; same, and the
-- versions; or changed, the time (ms), the status before (none if there was no record), 1 if they were here before, both as
-- they are now, the record, who is interested

local incarnation, change, must_exist = ARGV[1], ARGV[2], ARGV[3] == '1'
local summary, patience, said, devices = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local age_ms, declared, believed = tonumber(ARGV[8]), ARGV[9], ARGV[10]
local floor_v, floor_o, last_seen = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local pending_ms, keep_ms, number, doubted = tonumber(ARGV[14]), tonumber(ARGV[15]), ARGV[16], ARGV[17]
local former, known, word_age_ms = ARGV[18], tonumber(ARGV[19]), tonumber(ARGV[20])

-- A word that is older than a call takes may have been overtaken. A fresh one never was, whatever clocks were set.
local WORD_FRESH_MS = 5000

local record = load_record(KEYS[1])
local old = record.parts[incarnation]
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
  if believed ~= '' then
    record.d = believed
  end
end
if record.l == 0 then
  record.l = last_seen
end

local before = glimpse(record)
if not record.exists then
  before = { status = 'none', hidden = false, public = 'offline', print = '', here = false }
end
local had_pending, old_declared = record.q > 0, record.d
local is_changed = #record.wrong > 0
local sign = math.floor((NOW_MS - age_ms) / 1000)
local gone = {}
local is_own, had_own = { [incarnation] = true }, old ~= nil
for node in string.gmatch(former, '[^,]+') do
  is_own[node] = true
  if record.parts[node] then
    had_own, is_changed = true, true
    take_out(record, node)
    table.insert(gone, 'n:' .. node)
  end
end
-- With a part of the own nobody becomes pending by this, which would have to be noted first.
if (old or change == 'put') and take_out_lost(record, incarnation, gone) then
  is_changed = true
end
if change == 'put' then
  local deadline = NOW_MS - age_ms + tonumber(patience) * 1000
  local text = string.format('%s %.0f %.0f %s %s %s', summary, deadline, sign, patience, said, devices)
  local part = parse_part(text)
  if not part then
    return redis.error_reply('ERR the part cannot be read')
  end
  record.parts[incarnation] = part
  record.q = 0
  is_changed = is_changed or not old or old.devices ~= devices or old.said ~= said
else
  take_out(record, incarnation)
  if change == 'drop' then
    record.a = math.max(record.a, sign)
    -- They are pending because nobody could say what this node says now: that they went.
    if is_own[record.y] then
      record.q = 0
    end
  elseif had_own and not has_parts(record) then
    begin_pending(record, incarnation, pending_ms)
  end
  is_changed = is_changed or old ~= nil
  table.insert(gone, 'n:' .. incarnation)
end
if record.exists and record.o < known then
  -- A failover lost what was there already, and what was declared may have been among it.
  record.d = believed ~= '' and believed or nil
  is_changed, floor_o = true, math.max(floor_o, known + 1)
end
if declared ~= '=' and word_age_ms > WORD_FRESH_MS and NOW_MS - word_age_ms + WORD_FRESH_MS < record.w then
  -- They declared something else elsewhere since. Whoever says this does not know that yet, and is told.
  is_changed = true
elseif declared ~= '=' then
  record.d = declared ~= '-' and declared or nil
  record.w = NOW_MS - word_age_ms
end
end_declaration(record)
is_changed = is_changed or record.d ~= old_declared or had_pending ~= (record.q > 0)

-- An earlier call that was not answered did happen: what it changed is told with this one.
local earlier = doubted ~= '0' and record.changes[incarnation] or ''
local unsaid = { string.match(earlier, '^(%d+) (%l+) ([01]) %d+$') }
if unsaid[1] and tonumber(unsaid[1]) < tonumber(doubted) then
  unsaid = {}
end
local now = nil
if is_changed then
  now = settle(record, before, floor_v, floor_o)
  local was_here = unsaid[3] or (before.here and '1' or '0')
  record.changes[incarnation] =
    string.format('%s %s %s %.0f', number, unsaid[2] or before.status, was_here, NOW_MS)
  record.r = nil
else
  now = before
  record.v, record.o = math.max(record.v, floor_v), math.max(record.o, floor_o)
end
store(KEYS[1], record, gone, keep_ms)
show(record, now, before)
if unsaid[1] then
  before = { status = unsaid[2], here = unsaid[3] == '1' }
elseif not is_changed then
  return { 'same', whole(record.v), whole(record.o) }
end
return changed_reply(before, record)
