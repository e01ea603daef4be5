-- Applies journal entries, in journal order, to one torrent of the mirror (M4 to M8). Each entry is applied once: entries
-- up to the watermark only add the state of their peer and user to the reply.
--
-- KEYS[1]  counts of the torrent (hash)
-- KEYS[2]  active peers of the torrent (set)
-- KEYS[3]  state of the torrent (hash, private)
-- KEYS[4]  owner of the keys that are named by the infohash: a torrent (string, private). Two torrents may have had the
--          same infohash, one after the other.
-- KEYS[5…] for each peer: peer (hash), timeout (string)
-- ARGV[1]  torrent
-- ARGV[2]  infohash
-- ARGV[3]  1 if the site confirms that this torrent has this infohash, else 0
-- ARGV[4]  active time (s) below which a user who left is a hit and run; 0 for never
-- ARGV[5]  how long inactive peers are kept (s); 0 for ever
-- ARGV[6]  number of peers
-- ARGV[7…] peer ids; then for each entry:
--   ms, seq     id of the entry
--   peer, user  index of the peer from 1, user id
--   kind        a announce, c completed, s stopped, t timeout, r removal
--   complete    1, 0, or - if a stopped client did not report what is left
--   ts, since   time; s, t and r apply only if the peer's last announce was at `since` or before
--   reap        the peer expires this many seconds after ts
--   speeds      up, down (bytes/s)
--   announce    what a later timeout entry needs of this announce; empty for s, t and r
-- Returns the counts (announces, leechers, seeders, snatches); the number of entries that had been applied before; changed
-- peers, as pairs of index and 1 active, 0 inactive, 2 expired; changed users, as pairs of user and four digits, for
-- whether the torrent is in their sets active, complete, incomplete, hit and run. Peers and users of repeated entries are
-- returned even if unchanged. No counts and one infohash: nothing was applied, the torrent has that infohash.
--
-- The state is authoritative; public keys are derived from it. Fields: w watermark; h infohash; c counts; p<peer> the
-- users under this peer id, separated by | (several users may share a peer id; each is counted); u<user> active peers,
-- active seconds (concurrent peers count once), flags (has leeched, complete, snatched, removed by the site), time up to
-- which the seconds are counted.
--
-- Everything is read before anything is written, so that a key of the wrong type leaves all unchanged.

local ENTRY_ARGS = 12
-- Maximum number of users under one peer id.
local SHARED_MAX = 8
-- If the newest entry is older than LAG_S, later announces may be unread: timeouts are at least LAG_TIMEOUT_S.
local LAG_S, LAG_TIMEOUT_S = 30, 60
local state_key = KEYS[3]
local torrent, info_hash, is_confirmed = ARGV[1], ARGV[2], ARGV[3] == '1'
local hit_and_run, keep, peer_count = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- Parses an integer of at most 12 digits, also if another program wrote it.
local function number_of(text)
  return text and string.match(text, '^%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?$') and tonumber(text)
end

local function digit(is)
  return is and '1' or '0'
end

redis.call('HLEN', KEYS[1])
redis.call('SCARD', KEYS[2])
local known = redis.call('HMGET', state_key, 'w', 'h', 'c')
local owner = redis.call('GET', KEYS[4])
if known[2] and known[2] ~= info_hash then
  return { {}, 0, {}, { known[2] } }
end

-- Parses the users under a peer id.
local function parse_stored(text)
  local stored = {}
  for text_of_user in string.gmatch(text or '', '[^|]+') do
    local active, complete, last, first, time, reap, user, speed_up, speed_dn, announce =
      string.match(text_of_user, '^([01])([01]) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
    if active then
      table.insert(stored, {
        active = active == '1', complete = complete == '1', last = tonumber(last), first = tonumber(first),
        time = tonumber(time), reap = tonumber(reap), user = user, speed_up = speed_up, speed_dn = speed_dn,
        announce = announce,
      })
    end
  end
  return stored
end

-- Computes the counts from the state, if they are missing or malformed.
local function recount()
  local all = redis.call('HGETALL', state_key)
  local counts = { announces = 0, leechers = 0, seeders = 0, snatches = 0 }
  if owner == torrent then
    counts.announces = number_of(redis.call('HGET', KEYS[1], 'announces')) or 0
  end
  for position = 1, #all, 2 do
    local kind, value = string.sub(all[position], 1, 1), all[position + 1]
    if kind == 'p' then
      for _, stored in ipairs(parse_stored(value)) do
        local column = stored.complete and 'seeders' or 'leechers'
        counts[column] = counts[column] + (stored.active and 1 or 0)
      end
    elseif kind == 'u' and string.match(value, '^%d+ %d+ %d%d1') then
      counts.snatches = counts.snatches + 1
    end
  end
  return counts
end

local counts = {}
counts.announces, counts.leechers, counts.seeders, counts.snatches =
  string.match(known[3] or '', '^(%d+) (%d+) (%d+) (%d+)$')
for column, value in pairs(counts) do
  counts[column] = tonumber(value)
end
if not counts.announces then
  counts = recount()
end

local watermark_ms, watermark_seq = string.match(known[1] or '', '^(%d+)-(%d+)$')
watermark_ms, watermark_seq = watermark_ms or '0', watermark_seq or '0'

-- Compares decimal text: Lua numbers cannot represent every id.
local function is_greater(one, other)
  return #one > #other or #one == #other and one > other
end

local peers = {}
for number = 1, peer_count do
  local key, id = KEYS[3 + 2 * number], ARGV[6 + number]
  local peer = { key = key, timeout = KEYS[4 + 2 * number], id = id, was_active = false }
  local shown = redis.call('HMGET', key, 'user_id', 'completed', 'first_announce', 'last_announce', 'total_time')
  peer.stored = parse_stored(redis.call('HGET', state_key, 'p' .. id))
  if #peer.stored == 0 and number_of(shown[1]) and number_of(shown[4]) then
    -- An inactive peer: only the public hash is left of it.
    local last = number_of(shown[4])
    table.insert(peer.stored, {
      active = false, complete = shown[2] == '1', last = last, first = number_of(shown[3]) or last,
      time = number_of(shown[5]) or 0, reap = 0, user = shown[1], speed_up = '0', speed_dn = '0', announce = '-',
    })
  end
  for _, stored in ipairs(peer.stored) do
    peer.was_active = peer.was_active or stored.active
  end
  peers[number] = peer
end

-- In which sets of the user the torrent is.
local function sets_of(user)
  local is_inactive = user.peers <= 0
  local hit = is_inactive and user.leeched and not user.removed and user.time < hit_and_run
  return digit(not is_inactive) .. digit(user.complete) .. digit(not user.complete) .. digit(hit)
end

local users = {}
local function user_of(id)
  if not users[id] then
    local record = redis.call('HGET', state_key, 'u' .. id)
    local active, time, leeched, complete, snatched, removed, counted =
      string.match(record or '', '^(%d+) (%d+) (%d)(%d)(%d)(%d) ?(%d*)$')
    local user = {
      peers = tonumber(active or 0),
      time = tonumber(time or 0),
      counted = tonumber(counted or 0) or 0,
      leeched = leeched == '1',
      complete = complete == '1',
      snatched = snatched == '1',
      removed = removed == '1',
    }
    user.is_known = active ~= nil
    user.sets_before = user.is_known and sets_of(user) or '----'
    users[id] = user
  end
  return users[id]
end

-- Adds (1) or removes (-1) an active user of a peer id.
local function count(stored, by)
  local column = stored.complete and 'seeders' or 'leechers'
  counts[column] = math.max(0, counts[column] + by)
  local user = user_of(stored.user)
  user.is_known, user.peers = true, math.max(0, user.peers + by)
end

-- The stored user of a peer id and its position; nil if there is none.
local function find(peer, user)
  for position, stored in ipairs(peer.stored) do
    if stored.user == user then
      return stored, position
    end
  end
end

local function add_user(peer, entry)
  if #peer.stored >= SHARED_MAX then
    local evicted = table.remove(peer.stored, 1)
    if evicted.active then
      count(evicted, -1)
    end
  end
  local stored = {
    active = false, complete = false, time = 0, reap = 0, user = entry.user, speed_up = '0', speed_dn = '0', announce = '-',
  }
  table.insert(peer.stored, stored)
  return stored
end

-- The user shown in the public hash of a peer id: the latest active one, else the latest.
local function shown_of(peer)
  local chosen
  for _, stored in ipairs(peer.stored) do
    if not chosen or stored.active and not chosen.active
      or stored.active == chosen.active and stored.last >= chosen.last then
      chosen = stored
    end
  end
  return chosen
end

-- Applies an entry to a stored user, and moves it to the end of the list.
local function update_user(peer, stored, entry, is_active)
  local _, position = find(peer, stored.user)
  table.insert(peer.stored, table.remove(peer.stored, position))
  if stored.active then
    count(stored, -1)
  end
  if entry.kind == 'r' then
    user_of(entry.user).removed = true
  elseif entry.kind ~= 't' then
    local gap = stored.last and entry.ts - stored.last
    if stored.active and gap <= stored.reap then
      stored.time = stored.time + gap
      local user = user_of(stored.user)
      -- As in the ledger: time of two concurrent clients counts once.
      user.time = user.time + math.max(0, entry.ts - math.max(stored.last, user.counted))
      user.counted = math.max(user.counted, entry.ts)
    end
    if entry.complete ~= '-' then
      stored.complete = entry.complete == '1'
    end
    stored.first, stored.last = stored.first or entry.ts, entry.ts
  end
  stored.active, peer.changed, peer.expired = is_active, true, entry.kind == 't'
  stored.speed_up, stored.speed_dn = '0', '0'
  if is_active then
    stored.speed_up, stored.speed_dn, stored.announce, stored.reap =
      entry.speed_up, entry.speed_dn, entry.announce, entry.reap
    count(stored, 1)
  elseif not shown_of(peer).active then
    -- Without an active user, only the shown one is kept.
    peer.stored = { shown_of(peer) }
  end
end

local function deactivate(peer, entry)
  local stored = find(peer, entry.user)
  if not stored then
    -- An unknown peer: stopped is recorded, timeout and removal are not.
    if entry.kind == 's' then
      update_user(peer, add_user(peer, entry), entry, false)
    end
  elseif stored.last <= entry.since and (stored.active or entry.kind == 's') then
    update_user(peer, stored, entry, false)
  end
end

local function apply(peer, entry)
  if entry.kind == 't' or entry.kind == 'r' then
    return deactivate(peer, entry)
  end
  local user = user_of(entry.user)
  user.is_known, user.removed = true, false
  counts.announces = counts.announces + 1
  if entry.kind == 'c' and not user.snatched then
    user.snatched = true
    counts.snatches = counts.snatches + 1
  end
  user.complete = user.complete or entry.complete == '1'
  user.leeched = user.leeched or entry.complete == '0'
  if entry.kind == 's' then
    return deactivate(peer, entry)
  end
  local stored = find(peer, entry.user) or add_user(peer, entry)
  if not stored.last or entry.ts >= stored.last then
    update_user(peer, stored, entry, true)
  end
end

local repeated, has_announce = 0, false
for position = 7 + peer_count, #ARGV, ENTRY_ARGS do
  local ms, seq = ARGV[position], ARGV[position + 1]
  local peer = peers[tonumber(ARGV[position + 2])]
  local entry = {
    user = ARGV[position + 3],
    kind = ARGV[position + 4],
    complete = ARGV[position + 5],
    ts = tonumber(ARGV[position + 6]),
    since = tonumber(ARGV[position + 7]),
    reap = tonumber(ARGV[position + 8]),
    speed_up = ARGV[position + 9],
    speed_dn = ARGV[position + 10],
    announce = ARGV[position + 11],
  }
  if is_greater(ms, watermark_ms) or ms == watermark_ms and is_greater(seq, watermark_seq) then
    watermark_ms, watermark_seq = ms, seq
    has_announce = has_announce or entry.kind == 'a' or entry.kind == 'c'
    apply(peer, entry)
  else
    repeated = repeated + 1
    peer.is_repeated, user_of(entry.user).is_repeated = true, true
    peer.expired = entry.kind == 't'
  end
end

-- Writes begin here. A torrent whose infohash the site confirms takes over the keys named by it.
local takes_over = owner ~= torrent and (not owner or is_confirmed and has_announce)
local is_owner = takes_over or owner == torrent
if takes_over then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('SET', KEYS[4], torrent)
end

local state_fields = { 'w', watermark_ms .. '-' .. watermark_seq, 'h', info_hash }
local function set_field(field, value)
  table.insert(state_fields, field)
  table.insert(state_fields, value)
end

local function write_active(peer, now)
  local texts, deadline = {}, 0
  for _, stored in ipairs(peer.stored) do
    table.insert(texts, string.format('%s%s %d %d %d %d %s %s %s %s', digit(stored.active), digit(stored.complete),
      stored.last, stored.first, stored.time, stored.reap, stored.user, stored.speed_up, stored.speed_dn, stored.announce))
    if stored.active and (deadline == 0 or stored.last + stored.reap < deadline) then
      deadline = stored.last + stored.reap
    end
  end
  set_field('p' .. peer.id, table.concat(texts, '|'))
  -- A time in the past would delete the key without an expired event.
  local earliest = now + 1
  if now - tonumber(watermark_ms) / 1000 > LAG_S then
    earliest = now + LAG_TIMEOUT_S
  end
  redis.call('SET', peer.timeout, '1', 'EXAT', math.max(deadline, earliest))
  if not peer.was_active then
    redis.call('PERSIST', peer.key)
    if is_owner then
      redis.call('SADD', KEYS[2], peer.id)
    end
  end
end

local function write_inactive(peer)
  if peer.expired then
    -- Other programs wait for the expired event of Redis (M6), whichever process detected the timeout. With a time to live
    -- of 0 Redis would publish del instead.
    redis.call('PEXPIRE', peer.timeout, 1)
  else
    redis.call('DEL', peer.timeout)
  end
  redis.call('HDEL', state_key, 'p' .. peer.id)
  if is_owner then
    redis.call('SREM', KEYS[2], peer.id)
  end
  if keep > 0 then
    redis.call('EXPIRE', peer.key, keep)
  end
end

local function write_peer(peer, now)
  local shown = shown_of(peer)
  redis.call('HSET', peer.key, 'speed_up', shown.speed_up, 'speed_dn', shown.speed_dn, 'completed',
    digit(shown.complete), 'user_id', shown.user, 'first_announce', shown.first, 'last_announce', shown.last,
    'total_time', shown.time, 'active', digit(shown.active))
  peer.is_active = shown.active
  if shown.active then
    write_active(peer, now)
  else
    write_inactive(peer)
  end
end

local changed_peers, changed_users = {}, {}
local now = tonumber(redis.call('TIME')[1])
for number, peer in ipairs(peers) do
  peer.is_active = peer.was_active
  if peer.changed then
    write_peer(peer, now)
  end
  if peer.is_repeated or peer.is_active ~= peer.was_active then
    table.insert(changed_peers, number)
    table.insert(changed_peers, peer.is_active and 1 or peer.expired and 2 or 0)
  end
end
for id, user in pairs(users) do
  local sets = sets_of(user)
  if user.is_known then
    set_field('u' .. id, string.format('%d %d %s%s%s%s %d', user.peers, user.time, digit(user.leeched),
      digit(user.complete), digit(user.snatched), digit(user.removed), user.counted))
  end
  if user.is_known and (user.is_repeated or sets ~= user.sets_before) then
    table.insert(changed_users, id)
    table.insert(changed_users, sets)
  end
end
set_field('c', string.format('%d %d %d %d', counts.announces, counts.leechers, counts.seeders, counts.snatches))
redis.call('HSET', state_key, unpack(state_fields))
if takes_over then
  local all = redis.call('HGETALL', state_key)
  for position = 1, #all, 2 do
    local peer = string.match(all[position], '^p(%x+)$')
    if peer and (string.match(all[position + 1], '^1') or string.match(all[position + 1], '|1')) then
      redis.call('SADD', KEYS[2], peer)
    end
  end
end
if is_owner then
  redis.call('HSET', KEYS[1], 'announces', counts.announces, 'leechers', counts.leechers, 'seeders', counts.seeders,
    'snatches', counts.snatches)
end
return { { counts.announces, counts.leechers, counts.seeders, counts.snatches }, repeated, changed_peers, changed_users }
