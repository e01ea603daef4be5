-- Applies entries of the journal, in its order, to one torrent of the mirror (M4 to M8). Each entry counts once: those
-- up to the watermark were applied before, and only tell what is to be told again.
--
-- KEYS  the torrent's counts (hash), its active peers (set), what is known of it (hash, ours);
--       then for each peer: what is known of it (hash), its timeout (string)
-- ARGV  infohash; reap: a peer is gone this many seconds after its last announce; the active time below which somebody
--       who left is a hit and run, 0 for never; for how many seconds to keep peers that left, 0 for ever;
--       how many peers; their ids; then for each entry:
--         ms, seq: its id
--         the number of its peer, from 1; its user
--         kind: a announce, c completed, s stopped, t timeout, r removal
--         1 if the client has everything, else 0
--         ts; since: who goes, goes only if its last announce was then or before
--         speeds up and down
--         what an entry about its end will need, or empty
-- Returns the counts (announces, leechers, seeders, snatches); how many entries had been applied before; peers that
-- came or went, as number and 1 or 0 in turn; users of whom something changed, as user and four digits in turn:
-- whether the torrent is in their sets active, complete, incomplete, hit and run. Whoever an entry names that had been
-- applied before is among them, changed or not.
--
-- In the hash of ours: w the watermark, h the infohash, p<peer> what an entry about the end of an active peer needs,
-- u<user> active peers, seconds active, and whether ever leeched, complete, snatched.
--
-- Everything is read before anything is written: a key of another type changes nothing.

local COUNTS = { 'announces', 'leechers', 'seeders', 'snatches' }
local ENTRY_ARGS = 11
local own = KEYS[3]
local reap, hit_and_run, keep = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local peer_count = tonumber(ARGV[5])

local counts = {}
for position, value in ipairs(redis.call('HMGET', KEYS[1], unpack(COUNTS))) do
  counts[COUNTS[position]] = tonumber(value or 0) or 0
end
redis.call('SCARD', KEYS[2])

local watermark = redis.call('HGET', own, 'w') or '0-0'
local mark_ms, mark_seq = string.match(watermark, '^(%d+)-(%d+)$')
mark_ms, mark_seq = tonumber(mark_ms or 0), tonumber(mark_seq or 0)

local peers = {}
for number = 1, peer_count do
  local key = KEYS[2 + 2 * number]
  local known = redis.call('HMGET', key, 'active', 'completed', 'user_id', 'first_announce', 'last_announce', 'total_time')
  peers[number] = {
    key = key,
    timeout = KEYS[3 + 2 * number],
    id = ARGV[5 + number],
    active = known[1] == '1',
    was_active = known[1] == '1',
    complete = known[2] == '1',
    user = known[3],
    first = tonumber(known[4] or nil),
    last = tonumber(known[5] or nil),
    time = tonumber(known[6] or 0) or 0,
    speed_up = '0',
    speed_dn = '0',
  }
end

local function digit(is)
  return is and '1' or '0'
end

-- In which sets of a user the torrent is.
local function sets_of(user)
  local is_gone = user.peers <= 0
  local hit = is_gone and user.leeched and user.time < hit_and_run
  return digit(not is_gone) .. digit(user.complete) .. digit(not user.complete) .. digit(hit)
end

local users = {}
local function user_of(id)
  if not users[id] then
    local record = redis.call('HGET', own, 'u' .. id)
    local active, time, leeched, complete, snatched = string.match(record or '', '^(%d+) (%d+) (%d)(%d)(%d)$')
    local user = {
      peers = tonumber(active or 0),
      time = tonumber(time or 0),
      leeched = leeched == '1',
      complete = complete == '1',
      snatched = snatched == '1',
    }
    user.is_known = active ~= nil
    user.were = user.is_known and sets_of(user) or '----'
    users[id] = user
  end
  return users[id]
end

-- Counts a peer that is active, or no longer (-1).
local function count(peer, by)
  local column = peer.complete and 'seeders' or 'leechers'
  counts[column] = math.max(0, counts[column] + by)
  local user = user_of(peer.user)
  user.peers = math.max(0, user.peers + by)
end

-- Takes what an entry says of a peer's state.
local function move(peer, entry, is_active)
  if peer.active then
    count(peer, -1)
  end
  if entry.kind ~= 't' and entry.kind ~= 'r' then
    local gap = peer.last and entry.ts - peer.last
    if peer.active and gap <= reap then
      peer.time = peer.time + gap
      local user = user_of(peer.user)
      user.time = user.time + gap
    end
    peer.complete, peer.user = entry.complete, entry.user
    peer.first, peer.last = peer.first or entry.ts, entry.ts
  end
  peer.active, peer.changed = is_active, true
  if is_active then
    peer.speed_up, peer.speed_dn, peer.record = entry.speed_up, entry.speed_dn, entry.record
    count(peer, 1)
  else
    peer.speed_up, peer.speed_dn = '0', '0'
  end
end

local function leave(peer, entry)
  if not peer.last then
    -- Nobody knew it. That it said goodbye is worth knowing; that it fell silent is not.
    if entry.kind == 's' then
      move(peer, entry, false)
    end
  elseif peer.last <= entry.since and peer.user == entry.user and (peer.active or entry.kind == 's') then
    move(peer, entry, false)
  end
end

local function apply(peer, entry)
  if entry.kind == 't' or entry.kind == 'r' then
    return leave(peer, entry)
  end
  local user = user_of(entry.user)
  user.is_known = true
  counts.announces = counts.announces + 1
  if entry.kind == 'c' and not user.snatched then
    user.snatched = true
    counts.snatches = counts.snatches + 1
  end
  user.complete = user.complete or entry.complete
  user.leeched = user.leeched or not entry.complete
  if entry.kind == 's' then
    leave(peer, entry)
  elseif not peer.last or entry.ts >= peer.last then
    move(peer, entry, true)
  end
end

local repeated = 0
for position = 6 + peer_count, #ARGV, ENTRY_ARGS do
  local ms, seq = tonumber(ARGV[position]), tonumber(ARGV[position + 1])
  local peer = peers[tonumber(ARGV[position + 2])]
  local entry = {
    user = ARGV[position + 3],
    kind = ARGV[position + 4],
    complete = ARGV[position + 5] == '1',
    ts = tonumber(ARGV[position + 6]),
    since = tonumber(ARGV[position + 7]),
    speed_up = ARGV[position + 8],
    speed_dn = ARGV[position + 9],
    record = ARGV[position + 10],
  }
  if ms < mark_ms or ms == mark_ms and seq <= mark_seq then
    repeated = repeated + 1
    peer.tell, user_of(entry.user).tell = true, true
  else
    mark_ms, mark_seq = ms, seq
    watermark = ARGV[position] .. '-' .. ARGV[position + 1]
    apply(peer, entry)
  end
end

local own_fields = { 'w', watermark, 'h', ARGV[1] }
local function note(field, value)
  table.insert(own_fields, field)
  table.insert(own_fields, value)
end

local function write_peer(peer, now)
  redis.call('HSET', peer.key, 'speed_up', peer.speed_up, 'speed_dn', peer.speed_dn, 'completed',
    digit(peer.complete), 'user_id', peer.user, 'first_announce', peer.first, 'last_announce', peer.last,
    'total_time', peer.time, 'active', digit(peer.active))
  if peer.active then
    -- A time that has passed would remove the key without a message.
    redis.call('SET', peer.timeout, '1', 'EXAT', math.max(peer.last + reap, now + 1))
    note('p' .. peer.id, peer.record)
    if not peer.was_active then
      redis.call('SADD', KEYS[2], peer.id)
      redis.call('PERSIST', peer.key)
    end
  else
    redis.call('DEL', peer.timeout)
    redis.call('HDEL', own, 'p' .. peer.id)
    redis.call('SREM', KEYS[2], peer.id)
    if keep > 0 then
      redis.call('EXPIRE', peer.key, keep)
    end
  end
end

local told_peers, told_users = {}, {}
local now = tonumber(redis.call('TIME')[1])
for number, peer in ipairs(peers) do
  if peer.changed then
    write_peer(peer, now)
  end
  if peer.tell or peer.active ~= peer.was_active then
    table.insert(told_peers, number)
    table.insert(told_peers, peer.active and 1 or 0)
  end
end
for id, user in pairs(users) do
  local are = sets_of(user)
  if user.is_known then
    note('u' .. id, string.format('%d %d %s%s%s', user.peers, user.time, digit(user.leeched),
      digit(user.complete), digit(user.snatched)))
  end
  if user.is_known and (user.tell or are ~= user.were) then
    table.insert(told_users, id)
    table.insert(told_users, are)
  end
end
redis.call('HSET', own, unpack(own_fields))
redis.call('HSET', KEYS[1], 'announces', counts.announces, 'leechers', counts.leechers, 'seeders', counts.seeders,
  'snatches', counts.snatches)
return { { counts.announces, counts.leechers, counts.seeders, counts.snatches }, repeated, told_peers, told_users }
