-- A user's record: functions shared by the scripts that read or write it.
--
-- The record is a hash. Fields:
--   v, o              versions: public view, own view
--   d, w              declaration; when it was made (ms)
--   l                 last seen (s)
--   h                 invisible since (s)
--   a                 last activity (s)
--   q, y              pending until (ms); the incarnation whose entry was the last when the pending period began
--   k                 the public keys expire at this time at the latest (ms)
--   r                 the last reaped entry: reaper, kind:incarnation, status before, 1 if online before, time (ms)
--   n:<incarnation>   entry of a node
--   x:<incarnation>   fence: writes of this incarnation are refused until this time (ms)
--   z:<incarnation>   last change of this incarnation: call number, status before, 1 if online before, time (ms)
--
-- An entry is text, with spaces between: <highest declared status><1 if any device is online>, deadline (ms), last sign
-- of life (s), lifetime (s), the declared status of each device, then each device as <platform><app><1 if online><id>.
-- A declaration is <status>, until (s; 0 for no end), and - or + and the text.
-- Statuses: i invisible, b busy, o online, a away, - none.

local time = redis.call('TIME')
local NOW_MS = time[1] * 1000 + math.floor(time[2] / 1000)
local NOW_S = tonumber(time[1])

-- Formats an integer: Lua would write large ones as 1.7e+15.
local function whole(number)
  return string.format('%.0f', number)
end

-- Parses an integer; zero for anything else. At most 15 digits, which are exact in Lua.
local function number_of(text)
  return string.match(text, '^%d+$') and #text <= 15 and tonumber(text) or 0
end

local function parse_entry(text)
  local best, online, deadline, sign, lifetime, device_statuses, devices =
    string.match(text, '^([ibao%-])([01]) (%d+) (%d+) (%d+) ([ibao%-]+) (.+)$')
  if not best or number_of(deadline) == 0 or #sign > 10 or #lifetime > 10 then
    return nil
  end
  return {
    text = text, best = best, online = online == '1', deadline = tonumber(deadline), sign = tonumber(sign),
    lifetime = lifetime, device_statuses = device_statuses, devices = devices,
  }
end

-- Malformed fields are removed, a bounded number at a time.
local function note_malformed(record, field)
  if #record.malformed < 100 then
    table.insert(record.malformed, field)
  end
end

local function load_record(key)
  local record = { entries = {}, fences = {}, changes = {}, exists = false, malformed = {}, v = 0, o = 0, w = 0, l = 0, h = 0, a = 0, q = 0, k = 0 }
  local flat = redis.call('HGETALL', key)
  for at = 1, #flat, 2 do
    local field, value = flat[at], flat[at + 1]
    local kind, node = string.match(field, '^([nxz]):(.+)$')
    record.exists = true
    if kind == 'n' then
      record.entries[node] = parse_entry(value)
      if not record.entries[node] then
        note_malformed(record, field)
      end
    elseif kind == 'x' then
      record.fences[node] = number_of(value)
    elseif kind == 'z' then
      record.changes[node] = value
    elseif field == 'd' then
      if string.match(value, '^[ibao] %d+ [-+]') then
        record.d = value
      else
        note_malformed(record, field)
      end
    elseif field == 'y' or field == 'r' then
      record[field] = value
    elseif type(record[field]) == 'number' then
      record[field] = number_of(value)
    end
  end
  return record
end

local function has_entries(record)
  return next(record.entries) ~= nil
end

local function is_here(record)
  return has_entries(record) or record.q > 0
end

local RANKS = { i = 4, b = 3, o = 2, a = 1, ['-'] = 0 }
local NAMES = { i = 'invisible', b = 'busy', o = 'online', a = 'away' }

-- The same rules as in the crate `presence`.
local function status_of(record)
  if not has_entries(record) then
    return record.q > 0 and 'pending' or 'offline'
  end
  local best, automatic = '-', 'away'
  for _, entry in pairs(record.entries) do
    if RANKS[entry.best] > RANKS[best] then
      best = entry.best
    end
    if entry.online then
      automatic = 'online'
    end
  end
  local declared = record.d and string.sub(record.d, 1, 1)
  if declared == 'o' then
    return automatic
  end
  return NAMES[declared or best] or automatic
end

local function is_hidden(record, status)
  return status == 'invisible' or (status == 'pending' and record.h > 0)
end

-- The devices of all nodes, each once. Of several states of a device the highest counts, as in the crate `presence`.
local function merged_devices(record)
  local nodes, devices, ids = {}, {}, {}
  for node in pairs(record.entries) do
    table.insert(nodes, node)
  end
  table.sort(nodes)
  for _, node in ipairs(nodes) do
    for platform, app, online, id in string.gmatch(record.entries[node].devices, '(%l)(%l)(%d)(%S+)') do
      local known = devices[id]
      if not known then
        known = { platform = platform, app = app, online = online }
        devices[id] = known
        table.insert(ids, id)
      end
      -- Foreground, then background, then inactive.
      if app == 'f' or (app == 'b' and known.app == 'i') then
        known.app = app
      end
      if online == '1' then
        known.online = online
      end
    end
  end
  table.sort(ids)
  for at, id in ipairs(ids) do
    ids[at] = devices[id].platform .. devices[id].app .. devices[id].online .. id
  end
  return table.concat(ids, ' ')
end

-- The view of a record, to compare before and after a change. `print` is equal if other users see no difference.
local function view_of(record)
  local status = status_of(record)
  local hidden = is_hidden(record, status)
  local public = hidden and 'offline' or status
  local print = ''
  if public ~= 'offline' then
    -- Of the declaration others see the text and its end; the status is included already.
    print = status .. ' ' .. string.sub(record.d or '', 2) .. ' ' .. merged_devices(record)
  end
  return { status = status, hidden = hidden, public = public, print = print, here = is_here(record) }
end

-- Removes a declaration that ended. Returns whether it did.
local function end_declaration(record)
  local ends = record.d and tonumber(string.match(record.d, '^%l (%d+)'))
  if ends and ends > 0 and ends <= NOW_S then
    record.d = nil
    return true
  end
  return false
end

-- Removes an entry; its last activity is kept.
local function remove_entry(record, node)
  local entry = record.entries[node]
  if entry then
    record.a = math.max(record.a, entry.sign)
    record.entries[node] = nil
  end
end

-- The last entry was removed without a sign-off: the user is pending. `node` had the last entry.
local function begin_pending(record, node, pending_ms)
  record.q = NOW_MS + pending_ms
  record.y = node
end

-- An entry that expired this long ago and was not reaped is orphaned: no deadline set lists it.
local ORPHANED_MS = 5000

-- Removes orphaned entries except that of `except`. Returns the node of the last one removed, or nil.
local function remove_orphaned(record, except, deleted)
  local last = nil
  for node, entry in pairs(record.entries) do
    if node ~= except and entry.deadline + ORPHANED_MS <= NOW_MS then
      remove_entry(record, node)
      table.insert(deleted, 'n:' .. node)
      last = node
    end
  end
  return last
end

-- Updates times and versions after a change, by the rules of the crate `presence`. Returns the new view.
local function settle(record, before, floor_v, floor_o)
  local after = view_of(record)
  local was_seen = before.public ~= 'offline' and before.status ~= 'pending'
  if was_seen and (after.public == 'offline' or after.status == 'pending') then
    record.l = after.hidden and NOW_S or record.a
  end
  if after.hidden and record.h == 0 then
    record.h = NOW_S
  elseif not after.hidden then
    record.h = 0
  end
  -- Higher than any known version, also where the record was lost: a version identifies one state.
  record.o = math.max(record.o, floor_o) + 1
  record.v = math.max(record.v, floor_v) + (after.print ~= before.print and 1 or 0)
  return after
end

-- The latest deadline of all entries, and the last activity.
local function limits_of(record)
  local deadline, sign = 0, record.a
  for _, entry in pairs(record.entries) do
    deadline = math.max(deadline, entry.deadline)
    sign = math.max(sign, entry.sign)
  end
  return deadline, sign
end

-- How long the last change of an incarnation is kept, for a repeated call (ms).
local CHANGE_KEEP_MS = 600000

-- Writes the record. `deleted` lists fields to delete.
local function store(key, record, deleted, keep_ms)
  local fields = {}
  for _, name in ipairs({ 'v', 'o', 'w', 'l', 'h', 'a', 'q', 'k' }) do
    if record[name] > 0 then
      table.insert(fields, name)
      table.insert(fields, whole(record[name]))
    else
      table.insert(deleted, name)
    end
  end
  if record.q == 0 then
    record.y = nil
  end
  for _, name in ipairs({ 'd', 'y', 'r' }) do
    if record[name] then
      table.insert(fields, name)
      table.insert(fields, record[name])
    else
      table.insert(deleted, name)
    end
  end
  for node, entry in pairs(record.entries) do
    table.insert(fields, 'n:' .. node)
    table.insert(fields, entry.text)
  end
  for node, till in pairs(record.fences) do
    if till > NOW_MS then
      table.insert(fields, 'x:' .. node)
      table.insert(fields, whole(till))
    else
      table.insert(deleted, 'x:' .. node)
    end
  end
  for node, change in pairs(record.changes) do
    if NOW_MS - (tonumber(string.match(change, ' (%d+)$')) or 0) < CHANGE_KEEP_MS then
      table.insert(fields, 'z:' .. node)
      table.insert(fields, change)
    else
      table.insert(deleted, 'z:' .. node)
    end
  end
  for _, field in ipairs(record.malformed) do
    table.insert(deleted, field)
  end
  redis.call('HDEL', key, unpack(deleted))
  redis.call('HSET', key, unpack(fields))
  local deadline = limits_of(record)
  redis.call('PEXPIREAT', key, whole(math.max(deadline, record.q, NOW_MS) + keep_ms))
end

-- Writes the public keys (P3, P19). KEYS as in every script on a record. They exist only while a node has an entry of the
-- user, and expire at `k` at the latest, which only a node that puts its entry extends: writes after a node died neither
-- restore nor extend them.
local function write_public_keys(record, now)
  local deadline, sign = limits_of(record)
  deadline = math.min(deadline, record.k)
  if now.public == 'offline' or now.status == 'pending' or deadline <= NOW_MS then
    redis.call('DEL', KEYS[3], KEYS[4], KEYS[5])
    return
  end
  local names, seen = {}, {}
  for node in pairs(record.entries) do
    local name = string.match(node, '^(.+)%.[^.]*$') or node
    if not seen[name] then
      seen[name] = true
      table.insert(names, name)
    end
  end
  table.sort(names)
  redis.call('SET', KEYS[3], now.public, 'PXAT', whole(deadline))
  redis.call('SET', KEYS[4], table.concat(names, ','), 'PXAT', whole(deadline))
  redis.call('SET', KEYS[5], whole(sign), 'PXAT', whole(deadline))
end

-- The nodes that watch the user; expired interest is removed.
local function watchers_of(key)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', NOW_MS)
  return redis.call('ZRANGE', key, 0, -1)
end

-- The reply to a change: the views, the record, and the nodes to notify.
local function changed_reply(before, record)
  return {
    'changed', NOW_MS, before.status, before.here and 1 or 0, status_of(record), is_here(record) and 1 or 0,
    redis.call('HGETALL', KEYS[1]), watchers_of(KEYS[2]),
  }
end

