-- A person's record: what the scripts on it share.
--
-- The record is a hash: v and o the versions (public, own), d what was declared, w when (ms), l last seen (s), h hidden since (s),
-- a last alive (s), q pending until (ms), y whose part was the last when that began, r what was
-- cleared up last, n:<incarnation> a part, x:<incarnation> a fence (until, ms), z:<incarnation> its last change.
-- A part is one text: <best said><1 if any is online> <deadline, ms> <last sign, s> <gone in, s> <what each device said>
-- and the devices, each <platform><app><1 if online><id>, all with a space between. A declaration is <status> <until, s>
-- and -, or + and the text. Best said: i, b, o, a or - for invisible, busy, online, away, nothing.

local time = redis.call('TIME')
local NOW_MS = time[1] * 1000 + math.floor(time[2] / 1000)
local NOW_S = tonumber(time[1])

-- Whole numbers: Lua would write great ones as 1.7e+15.
local function whole(number)
  return string.format('%.0f', number)
end

-- A number that we wrote; zero for anything else. No more digits than a number has that is exact in Lua.
local function number_of(text)
  return string.match(text, '^%d+$') and #text <= 15 and tonumber(text) or 0
end

local function parse_part(text)
  local best, online, deadline, sign, patience, said, devices =
    string.match(text, '^([ibao%-])([01]) (%d+) (%d+) (%d+) ([ibao%-]+) (.+)$')
  if not best or number_of(deadline) == 0 or #sign > 10 or #patience > 10 then
    return nil
  end
  return {
    text = text, best = best, online = online == '1', deadline = tonumber(deadline), sign = tonumber(sign),
    patience = patience, said = said, devices = devices,
  }
end

-- Fields that others wrote are removed, a bounded number at a time.
local function note_wrong(record, field)
  if #record.wrong < 100 then
    table.insert(record.wrong, field)
  end
end

local function load_record(key)
  local record = { parts = {}, fences = {}, changes = {}, exists = false, wrong = {}, v = 0, o = 0, w = 0, l = 0, h = 0, a = 0, q = 0 }
  local flat = redis.call('HGETALL', key)
  for at = 1, #flat, 2 do
    local field, value = flat[at], flat[at + 1]
    local kind, node = string.match(field, '^([nxz]):(.+)$')
    record.exists = true
    if kind == 'n' then
      record.parts[node] = parse_part(value)
      if not record.parts[node] then
        note_wrong(record, field)
      end
    elseif kind == 'x' then
      record.fences[node] = number_of(value)
    elseif kind == 'z' then
      record.changes[node] = value
    elseif field == 'd' then
      if string.match(value, '^[ibao] %d+ [-+]') then
        record.d = value
      else
        note_wrong(record, field)
      end
    elseif field == 'y' or field == 'r' then
      record[field] = value
    elseif type(record[field]) == 'number' then
      record[field] = number_of(value)
    end
  end
  return record
end

local function has_parts(record)
  return next(record.parts) ~= nil
end

local function is_here(record)
  return has_parts(record) or record.q > 0
end

local RANKS = { i = 4, b = 3, o = 2, a = 1, ['-'] = 0 }
local NAMES = { i = 'invisible', b = 'busy', o = 'online', a = 'away' }

-- The rules of presence/src/person.rs.
local function status_of(record)
  if not has_parts(record) then
    return record.q > 0 and 'pending' or 'offline'
  end
  local best, automatic = '-', 'away'
  for _, part in pairs(record.parts) do
    if RANKS[part.best] > RANKS[best] then
      best = part.best
    end
    if part.online then
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

-- All devices, each once, whatever nodes they are at: the best counts, as in presence/src/person.rs.
local function merged_devices(record)
  local nodes, devices, ids = {}, {}, {}
  for node in pairs(record.parts) do
    table.insert(nodes, node)
  end
  table.sort(nodes)
  for _, node in ipairs(nodes) do
    for platform, app, online, id in string.gmatch(record.parts[node].devices, '(%l)(%l)(%d)(%S+)') do
      local known = devices[id]
      if not known then
        known = { platform = platform, app = app, online = online }
        devices[id] = known
        table.insert(ids, id)
      end
      -- f, then b, then i.
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

-- What can be compared before and after a change.
local function glimpse(record)
  local status = status_of(record)
  local hidden = is_hidden(record, status)
  local public = hidden and 'offline' or status
  local print = ''
  if public ~= 'offline' then
    -- Of what is declared others see the text and its end; the status is there already.
    print = status .. ' ' .. string.sub(record.d or '', 2) .. ' ' .. merged_devices(record)
  end
  return { status = status, hidden = hidden, public = public, print = print, here = is_here(record) }
end

-- What somebody declared ends by itself.
local function end_declaration(record)
  local ends = record.d and tonumber(string.match(record.d, '^%l (%d+)'))
  if ends and ends > 0 and ends <= NOW_S then
    record.d = nil
    return true
  end
  return false
end

-- A part goes, and what it knew of the last sign of life stays.
local function take_out(record, node)
  local part = record.parts[node]
  if part then
    record.a = math.max(record.a, part.sign)
    record.parts[node] = nil
  end
end

-- Nobody is here any more of whose going anybody can be sure: `node` was the last that they were at.
local function begin_pending(record, node, pending_ms)
  record.q = NOW_MS + pending_ms
  record.y = node
end

-- A part that was not renewed and that nobody cleared up in all this time: what said that it was due is lost.
local LOST_MS = 5000

-- Takes such parts out, but for that of `except`. Returns the last of them, if there are any.
local function take_out_lost(record, except, gone)
  local last = nil
  for node, part in pairs(record.parts) do
    if node ~= except and part.deadline + LOST_MS <= NOW_MS then
      take_out(record, node)
      table.insert(gone, 'n:' .. node)
      last = node
    end
  end
  return last
end

-- Times that follow from a change, by the rules of presence/src/roster/settling.rs.
local function settle(record, before, floor_v, floor_o)
  local after = glimpse(record)
  local was_seen = before.public ~= 'offline' and before.status ~= 'pending'
  if was_seen and (after.public == 'offline' or after.status == 'pending') then
    record.l = after.hidden and NOW_S or record.a
  end
  if after.hidden and record.h == 0 then
    record.h = NOW_S
  elseif not after.hidden then
    record.h = 0
  end
  -- Higher than what anybody knows, also where the record was lost: two records of one version are one.
  record.o = math.max(record.o, floor_o) + 1
  record.v = math.max(record.v, floor_v) + (after.print ~= before.print and 1 or 0)
  return after
end

-- The longest deadline of the parts, and the last sign of life of any.
local function limits_of(record)
  local deadline, sign = 0, record.a
  for _, part in pairs(record.parts) do
    deadline = math.max(deadline, part.deadline)
    sign = math.max(sign, part.sign)
  end
  return deadline, sign
end

-- For how long a node that was not answered may ask again what it changed (ms).
local CHANGE_KEEP_MS = 600000

-- Writes the record. `gone` are fields that go.
local function store(key, record, gone, keep_ms)
  local fields = {}
  for _, name in ipairs({ 'v', 'o', 'w', 'l', 'h', 'a', 'q' }) do
    if record[name] > 0 then
      table.insert(fields, name)
      table.insert(fields, whole(record[name]))
    else
      table.insert(gone, name)
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
      table.insert(gone, name)
    end
  end
  for node, part in pairs(record.parts) do
    table.insert(fields, 'n:' .. node)
    table.insert(fields, part.text)
  end
  for node, till in pairs(record.fences) do
    if till > NOW_MS then
      table.insert(fields, 'x:' .. node)
      table.insert(fields, whole(till))
    else
      table.insert(gone, 'x:' .. node)
    end
  end
  for node, change in pairs(record.changes) do
    if NOW_MS - (tonumber(string.match(change, ' (%d+)$')) or 0) < CHANGE_KEEP_MS then
      table.insert(fields, 'z:' .. node)
      table.insert(fields, change)
    else
      table.insert(gone, 'z:' .. node)
    end
  end
  for _, field in ipairs(record.wrong) do
    table.insert(gone, field)
  end
  redis.call('HDEL', key, unpack(gone))
  redis.call('HSET', key, unpack(fields))
  local deadline = limits_of(record)
  redis.call('PEXPIREAT', key, whole(math.max(deadline, record.q, NOW_MS) + keep_ms))
end

-- Nobody is shown as pending by the public keys for longer than a device in use may be silent.
local PENDING_MS_MAX = 90000

-- Writes the public keys (P3). KEYS are as in every script on a record.
local function show(record, now, before)
  local deadline, sign = limits_of(record)
  if now.status == 'pending' and not now.hidden then
    redis.call('DEL', KEYS[4])
    if before.status == 'pending' then
      return
    end
    deadline = math.min(record.q, NOW_MS + PENDING_MS_MAX)
  end
  if now.public == 'offline' or deadline <= NOW_MS then
    redis.call('DEL', KEYS[3], KEYS[4], KEYS[5])
    return
  end
  redis.call('SET', KEYS[3], now.public, 'PXAT', whole(deadline))
  redis.call('SET', KEYS[5], whole(sign), 'PXAT', whole(deadline))
  if now.status ~= 'pending' then
    local names, seen = {}, {}
    for node in pairs(record.parts) do
      local name = string.match(node, '^(.+)%.[^.]*$') or node
      if not seen[name] then
        seen[name] = true
        table.insert(names, name)
      end
    end
    table.sort(names)
    redis.call('SET', KEYS[4], table.concat(names, ','), 'PXAT', whole(deadline))
  end
end

-- Who is interested; interest that is over goes.
local function watchers_of(key)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', NOW_MS)
  return redis.call('ZRANGE', key, 0, -1)
end

-- The reply to a change: who is to be told, and all there is.
local function changed_reply(before, record)
  return {
    'changed', NOW_MS, before.status, before.here and 1 or 0, status_of(record), is_here(record) and 1 or 0,
    redis.call('HGETALL', KEYS[1]), watchers_of(KEYS[2]),
  }
end

