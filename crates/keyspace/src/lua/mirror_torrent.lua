-- Applies entries of the journal, in its order, to one torrent of the mirror (M4 to M8). Each entry counts once: those
-- up to the watermark were applied before, and only tell what is to be told again.
--
-- KEYS  the torrent's counts (hash), its active peers (set), what is known of it (hash, ours), whose counts these are
--       (string, ours: where names come from the infohash, two torrents may have had it one after the other);
--       then for each peer: what is known of it (hash), its timeout (string)
-- ARGV  torrent; infohash; 1 if the site says that this torrent has this infohash, else 0;
--       the active time below which somebody who left is a hit and run, 0 for never; for how many seconds to keep
--       peers that left, 0 for ever; how many peers; their ids; then for each entry:
--         ms, seq: its id
--         the number of its peer, from 1; its user
--         kind: a announce, c completed, s stopped, t timeout, r removal
--         1 if the client has everything, 0 if not, - if it said goodbye and did not say
--         ts; since: who goes, goes only if its last announce was then or before
--         reap: the peer is gone this many seconds after this
--         speeds up and down
--         what an entry about its end will need, or empty
-- Returns the counts (announces, leechers, seeders, snatches); how many entries had been applied before; peers that
-- came or went, as number and 1, 0, or 2 if a timeout ended them, in turn; users of whom something changed, as user and
-- four digits in turn:
-- whether the torrent is in their sets active, complete, incomplete, hit and run. Whoever an entry names that had been
-- applied before is among them, changed or not. No counts and one infohash mean that nothing was done: the torrent is
-- known by that one.
--
-- The hash of ours is the truth; what others read follows from it. In it: w the watermark, h the infohash, c the counts,
-- p<peer> who is there under this peer id, one after the other with | between them (more than one user may be, each
-- counts), u<user> active peers, seconds active however many peers were, whether ever leeched, complete, snatched, turned
-- out, and up to when the seconds are counted.
--
-- Everything is read before anything is written: a key of another type changes nothing.

local ENTRY_ARGS = 12
-- Users under one peer id, at most.
local SHARED_MAX = 8
-- A batch this many seconds old means that we are behind: nobody is silent for sure, and timeouts wait.
local BEHIND, WAIT = 30, 60
local own = KEYS[3]
local torrent, info_hash, is_confirmed = ARGV[1], ARGV[2], ARGV[3] == '1'
local hit_and_run, keep, peer_count = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- A whole number that a foreign hand cannot make too great.
local function number_of(text)
  return text and string.match(text, '^%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?$') and tonumber(text)
end

local function digit(is)
  return is and '1' or '0'
end

redis.call('HLEN', KEYS[1])
redis.call('SCARD', KEYS[2])
local known = redis.call('HMGET', own, 'w', 'h', 'c')
local owner = redis.call('GET', KEYS[4])
if known[2] and known[2] ~= info_hash then
  return { {}, 0, {}, { known[2] } }
end

-- Who is there under a peer id.
local function read_there(text)
  local there = {}
  for part in string.gmatch(text or '', '[^|]+') do
    local active, complete, last, first, time, reap, user, speed_up, speed_dn, record =
      string.match(part, '^([01])([01]) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
    if active then
      table.insert(there, {
        active = active == '1', complete = complete == '1', last = tonumber(last), first = tonumber(first),
        time = tonumber(time), reap = tonumber(reap), user = user, speed_up = speed_up, speed_dn = speed_dn,
        record = record,
      })
    end
  end
  return there
end

-- Counts anew, where no count can be read.
local function recount()
  local all = redis.call('HGETALL', own)
  local counts = { announces = 0, leechers = 0, seeders = 0, snatches = 0 }
  if owner == torrent then
    counts.announces = number_of(redis.call('HGET', KEYS[1], 'announces')) or 0
  end
  for position = 1, #all, 2 do
    local kind, value = string.sub(all[position], 1, 1), all[position + 1]
    if kind == 'p' then
      for _, there in ipairs(read_there(value)) do
        local column = there.complete and 'seeders' or 'leechers'
        counts[column] = counts[column] + (there.active and 1 or 0)
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

local mark_ms, mark_seq = string.match(known[1] or '', '^(%d+)-(%d+)$')
mark_ms, mark_seq = mark_ms or '0', mark_seq or '0'

-- Compares as text: a number of Lua does not hold every id.
local function is_greater(one, other)
  return #one > #other or #one == #other and one > other
end

local peers = {}
for number = 1, peer_count do
  local key, id = KEYS[3 + 2 * number], ARGV[6 + number]
  local peer = { key = key, timeout = KEYS[4 + 2 * number], id = id, was_active = false }
  local shown = redis.call('HMGET', key, 'user_id', 'completed', 'first_announce', 'last_announce', 'total_time')
  peer.there = read_there(redis.call('HGET', own, 'p' .. id))
  if #peer.there == 0 and number_of(shown[1]) and number_of(shown[4]) then
    -- It has left. That is all that is remembered of it.
    local last = number_of(shown[4])
    table.insert(peer.there, {
      active = false, complete = shown[2] == '1', last = last, first = number_of(shown[3]) or last,
      time = number_of(shown[5]) or 0, reap = 0, user = shown[1], speed_up = '0', speed_dn = '0', record = '-',
    })
  end
  for _, there in ipairs(peer.there) do
    peer.was_active = peer.was_active or there.active
  end
  peers[number] = peer
end

-- In which sets of a user the torrent is.
local function sets_of(user)
  local is_gone = user.peers <= 0
  local hit = is_gone and user.leeched and not user.removed and user.time < hit_and_run
  return digit(not is_gone) .. digit(user.complete) .. digit(not user.complete) .. digit(hit)
end

local users = {}
local function user_of(id)
  if not users[id] then
    local record = redis.call('HGET', own, 'u' .. id)
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
    user.were = user.is_known and sets_of(user) or '----'
    users[id] = user
  end
  return users[id]
end

-- Counts somebody who is active, or no longer (-1).
local function count(there, by)
  local column = there.complete and 'seeders' or 'leechers'
  counts[column] = math.max(0, counts[column] + by)
  local user = user_of(there.user)
  user.is_known, user.peers = true, math.max(0, user.peers + by)
end

-- The user under a peer id, and the place among those who are there; nil where nobody knew them.
local function find(peer, user)
  for position, there in ipairs(peer.there) do
    if there.user == user then
      return there, position
    end
  end
end

local function come(peer, entry)
  if #peer.there >= SHARED_MAX then
    local gone = table.remove(peer.there, 1)
    if gone.active then
      count(gone, -1)
    end
  end
  local there = {
    active = false, complete = false, time = 0, reap = 0, user = entry.user, speed_up = '0', speed_dn = '0', record = '-',
  }
  table.insert(peer.there, there)
  return there
end

-- Who is shown of those under one peer id: the latest who is active, else the latest.
local function choose(peer)
  local chosen
  for _, there in ipairs(peer.there) do
    if not chosen or there.active and not chosen.active
      or there.active == chosen.active and there.last >= chosen.last then
      chosen = there
    end
  end
  return chosen
end

-- Takes what an entry says of a peer's state. Whoever was heard last is last of those who are there.
local function move(peer, there, entry, is_active)
  local _, position = find(peer, there.user)
  table.insert(peer.there, table.remove(peer.there, position))
  if there.active then
    count(there, -1)
  end
  if entry.kind == 'r' then
    user_of(entry.user).removed = true
  elseif entry.kind ~= 't' then
    local gap = there.last and entry.ts - there.last
    if there.active and gap <= there.reap then
      there.time = there.time + gap
      local user = user_of(there.user)
      -- Wall clock, as in the accounts: two clients at the same time count once.
      user.time = user.time + math.max(0, entry.ts - math.max(there.last, user.counted))
      user.counted = math.max(user.counted, entry.ts)
    end
    if entry.complete ~= '-' then
      there.complete = entry.complete == '1'
    end
    there.first, there.last = there.first or entry.ts, entry.ts
  end
  there.active, peer.changed, peer.expired = is_active, true, entry.kind == 't'
  there.speed_up, there.speed_dn = '0', '0'
  if is_active then
    there.speed_up, there.speed_dn, there.record, there.reap =
      entry.speed_up, entry.speed_dn, entry.record, entry.reap
    count(there, 1)
  elseif not choose(peer).active then
    -- Once nobody is there, one of them is remembered.
    peer.there = { choose(peer) }
  end
end

local function leave(peer, entry)
  local there = find(peer, entry.user)
  if not there then
    -- Nobody knew it. That it said goodbye is worth knowing; that it fell silent is not.
    if entry.kind == 's' then
      move(peer, come(peer, entry), entry, false)
    end
  elseif there.last <= entry.since and (there.active or entry.kind == 's') then
    move(peer, there, entry, false)
  end
end

local function apply(peer, entry)
  if entry.kind == 't' or entry.kind == 'r' then
    return leave(peer, entry)
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
    return leave(peer, entry)
  end
  local there = find(peer, entry.user) or come(peer, entry)
  if not there.last or entry.ts >= there.last then
    move(peer, there, entry, true)
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
    record = ARGV[position + 11],
  }
  if is_greater(ms, mark_ms) or ms == mark_ms and is_greater(seq, mark_seq) then
    mark_ms, mark_seq = ms, seq
    has_announce = has_announce or entry.kind == 'a' or entry.kind == 'c'
    apply(peer, entry)
  else
    repeated = repeated + 1
    peer.tell, user_of(entry.user).tell = true, true
    peer.expired = entry.kind == 't'
  end
end

-- From here on it is written. Whoever the site says has the infohash now takes the keys that are named by it.
local is_taking = owner ~= torrent and (not owner or is_confirmed and has_announce)
local is_owner = is_taking or owner == torrent
if is_taking then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('SET', KEYS[4], torrent)
end

local own_fields = { 'w', mark_ms .. '-' .. mark_seq, 'h', info_hash }
local function note(field, value)
  table.insert(own_fields, field)
  table.insert(own_fields, value)
end

local function write_active(peer, now)
  local texts, deadline = {}, 0
  for _, there in ipairs(peer.there) do
    table.insert(texts, string.format('%s%s %d %d %d %d %s %s %s %s', digit(there.active), digit(there.complete),
      there.last, there.first, there.time, there.reap, there.user, there.speed_up, there.speed_dn, there.record))
    if there.active and (deadline == 0 or there.last + there.reap < deadline) then
      deadline = there.last + there.reap
    end
  end
  note('p' .. peer.id, table.concat(texts, '|'))
  -- A time that has passed would remove the key without a message.
  local earliest = now + 1
  if now - tonumber(mark_ms) / 1000 > BEHIND then
    earliest = now + WAIT
  end
  redis.call('SET', peer.timeout, '1', 'EXAT', math.max(deadline, earliest))
  if not peer.was_active then
    redis.call('PERSIST', peer.key)
    if is_owner then
      redis.call('SADD', KEYS[2], peer.id)
    end
  end
end

local function write_left(peer)
  if peer.expired then
    -- Whichever part noticed the silence: other programs wait for the event of Redis itself (M6). In no time at all, the
    -- key would be deleted, which is another event.
    redis.call('PEXPIRE', peer.timeout, 1)
  else
    redis.call('DEL', peer.timeout)
  end
  redis.call('HDEL', own, 'p' .. peer.id)
  if is_owner then
    redis.call('SREM', KEYS[2], peer.id)
  end
  if keep > 0 then
    redis.call('EXPIRE', peer.key, keep)
  end
end

local function write_peer(peer, now)
  local shown = choose(peer)
  redis.call('HSET', peer.key, 'speed_up', shown.speed_up, 'speed_dn', shown.speed_dn, 'completed',
    digit(shown.complete), 'user_id', shown.user, 'first_announce', shown.first, 'last_announce', shown.last,
    'total_time', shown.time, 'active', digit(shown.active))
  peer.is_active = shown.active
  if shown.active then
    write_active(peer, now)
  else
    write_left(peer)
  end
end

local told_peers, told_users = {}, {}
local now = tonumber(redis.call('TIME')[1])
for number, peer in ipairs(peers) do
  peer.is_active = peer.was_active
  if peer.changed then
    write_peer(peer, now)
  end
  if peer.tell or peer.is_active ~= peer.was_active then
    table.insert(told_peers, number)
    table.insert(told_peers, peer.is_active and 1 or peer.expired and 2 or 0)
  end
end
for id, user in pairs(users) do
  local are = sets_of(user)
  if user.is_known then
    note('u' .. id, string.format('%d %d %s%s%s%s %d', user.peers, user.time, digit(user.leeched),
      digit(user.complete), digit(user.snatched), digit(user.removed), user.counted))
  end
  if user.is_known and (user.tell or are ~= user.were) then
    table.insert(told_users, id)
    table.insert(told_users, are)
  end
end
note('c', string.format('%d %d %d %d', counts.announces, counts.leechers, counts.seeders, counts.snatches))
redis.call('HSET', own, unpack(own_fields))
if is_taking then
  local all = redis.call('HGETALL', own)
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
return { { counts.announces, counts.leechers, counts.seeders, counts.snatches }, repeated, told_peers, told_users }
