-- Removes expired activity of one user (A4), then reads counts and a page of a list (A5).
--
-- KEYS     seed, leech, stopped, clients
-- ARGV[1]  cutoff: reports of this time or before have expired, plus the extra silence of their client
-- ARGV[2]  maximum number of torrents to remove
-- ARGV[3]  "seed" or "leech" for a page of that list, "-" for none
-- ARGV[4]  torrents per page
-- ARGV[5]  the page begins after this ts; -1 for the first page
-- ARGV[6]  and after this infohash
-- Returns the name of a key of the wrong type, or ''; 1 if there may be more expired torrents, else 0; the lengths of seed
-- and leech; the page as alternating infohashes and ts, newest first.
--
-- seed, leech  sorted sets of infohashes by the last announce: public
-- stopped      sorted set of the infohashes whose clients have all stopped
-- clients      hash: infohash -> a report of 33 bytes for each client: client id (8), state (s seeding, l leeching,
--              x stopped), extra silence (4; seconds beyond the usual limit, because the client's interval is longer),
--              ts (4), origin (16); big-endian. A regular announce that is its client's first entry of a second has no
--              origin: 15 zeros, then 1 if it seeds, else 0.
--
-- A torrent is in the hash and in one of the sets, or in none. If it has one client, a regular announce that changes only
-- the time is written to the set and not to the hash: the later of both is the client's last announce. If it has several
-- clients, the times in the hash count. Text is not compared with <, which in Lua depends on the locale.

local cutoff, remove_max = tonumber(ARGV[1]), tonumber(ARGV[2])
local list, limit, after_at, after_infohash = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

-- Maximum number of torrents per set that are kept although their last announce was before the cutoff.
local KEPT_MAX = 10000
-- Torrents read from a set per command.
local PAGE = 1000

local CLIENT_BYTES, TS_AT = 33, 14
local SETS = { s = 'seed', l = 'leech', x = 'stopped' }
local HEARTBEATS = { s = string.rep('\0', 15) .. '\1', l = string.rep('\0', 16) }

local function time_of(report)
  return (struct.unpack('>I4', report, TS_AT))
end

-- A report expires when the cutoff reaches this time.
local function expires_at(report)
  return time_of(report) + struct.unpack('>I4', report, 10)
end

-- The state of a torrent: seeding if any client seeds, else leeching if any leeches, else stopped; the last announce of a
-- client in that state; when that expires. nil without clients.
local function summary_of(reports)
  local latest, expiry = {}, {}
  for _, report in ipairs(reports) do
    local state = string.sub(report, 9, 9)
    latest[state] = math.max(latest[state] or 0, time_of(report))
    expiry[state] = math.max(expiry[state] or 0, expires_at(report))
  end
  local state = latest.s and 's' or latest.l and 'l' or latest.x and 'x' or nil
  return state, latest[state or ''], expiry[state or '']
end

-- The reports of a torrent's clients, each with the client's last announce.
local function read_reports(keys, infohash)
  local record = redis.call('HGET', keys.clients, infohash)
  local reports = {}
  if not record or #record % CLIENT_BYTES ~= 0 then
    return reports
  end
  for first = 1, #record, CLIENT_BYTES do
    table.insert(reports, string.sub(record, first, first + CLIENT_BYTES - 1))
  end
  local state = string.sub(record, 9, 9)
  if #reports == 1 and HEARTBEATS[state] then
    local at = tonumber(redis.call('ZSCORE', keys[SETS[state]], infohash) or 0)
    if at > time_of(record) then
      reports[1] = string.sub(record, 1, TS_AT - 1) .. struct.pack('>I4', at) .. HEARTBEATS[state]
    end
  end
  return reports
end

-- Removes expired reports of a torrent. The hash is written last, so that a failed call can be repeated.
local function update(keys, infohash)
  local known = read_reports(keys, infohash)
  local before = summary_of(known)
  local reports = {}
  for _, report in ipairs(known) do
    if expires_at(report) > cutoff then
      table.insert(reports, report)
    end
  end
  local after, at = summary_of(reports)
  if after then
    redis.call('ZADD', keys[SETS[after]], at, infohash)
  end
  if not before and after ~= 'x' then
    -- If the hash was lost, the torrent may still be in the other list, which would violate A3.
    before = after == 's' and 'l' or 's'
  end
  if before and before ~= after then
    redis.call('ZREM', keys[SETS[before]], infohash)
  end
  if after then
    redis.call('HSET', keys.clients, infohash, table.concat(reports))
  else
    redis.call('HDEL', keys.clients, infohash)
  end
end

-- Runs a step for one user. If a key of the user has the wrong type, returns nil and its name as above; any other error
-- ends the script.
local function guarded(keys, step, ...)
  local ok, result = pcall(step, keys, ...)
  if ok then
    return result
  end
  local text = type(result) == 'table' and result.err or tostring(result)
  if string.find(text, 'WRONGTYPE', 1, true) then
    for name, kind in pairs({ seed = 'zset', leech = 'zset', stopped = 'zset', clients = 'hash' }) do
      local found = redis.call('TYPE', keys[name]).ok
      if found ~= kind and found ~= 'none' then
        return nil, name
      end
    end
  end
  error(result, 0)
end

-- Removes expired reports from up to `limit` torrents of one set. Returns the number of torrents.
local function expire_set(keys, name, limit)
  local removed, kept = 0, 0
  while removed < limit and kept < KEPT_MAX do
    local count = math.min(limit - removed, PAGE)
    local old = redis.call('ZRANGEBYSCORE', keys[name], '-inf', cutoff, 'LIMIT', kept, count)
    for _, infohash in ipairs(old) do
      local state, _, expiry = summary_of(read_reports(keys, infohash))
      if state and SETS[state] == name and expiry > cutoff then
        kept = kept + 1
      else
        -- Removed even if the hash has no reports of it; added again by `update` if one has not expired.
        redis.call('ZREM', keys[name], infohash)
        update(keys, infohash)
        removed = removed + 1
      end
    end
    if #old < count then
      break
    end
  end
  return removed
end

-- Removes expired reports from up to `remove_max` torrents. Returns whether there may be more.
local function expire(keys)
  local torrents = 0
  for _, name in pairs(SETS) do
    torrents = torrents + expire_set(keys, name, remove_max - torrents)
  end
  return torrents >= remove_max
end

-- Other programs remove old members from the public sets (A4) but not from the hash. If the hash has more torrents than
-- the sets, each of its torrents is updated.
local function sync_hash(keys)
  local known, listed = redis.call('HLEN', keys.clients), 0
  for _, name in pairs(SETS) do
    listed = listed + redis.call('ZCARD', keys[name])
  end
  if known > listed then
    for _, infohash in ipairs(redis.call('HKEYS', keys.clients)) do
      update(keys, infohash)
    end
  end
end

-- Whether infohash a is greater than b, byte by byte.
local function is_greater(a, b)
  for position = 1, math.min(#a, #b) do
    local x, y = string.byte(a, position), string.byte(b, position)
    if x ~= y then
      return x > y
    end
  end
  return #a > #b
end

-- The number of torrents in the list before the page. Members with equal scores are ordered, so a binary search works.
local function rank_after(key)
  if after_at < 0 then
    return 0
  end
  local low = redis.call('ZCOUNT', key, '(' .. after_at, '+inf')
  local high = low + redis.call('ZCOUNT', key, after_at, after_at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local infohash = redis.call('ZREVRANGE', key, middle, middle)[1]
    if infohash == after_infohash or is_greater(infohash, after_infohash) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function read(keys)
  local has_more = expire(keys)
  if not has_more then
    sync_hash(keys)
  end
  local seeding, leeching = redis.call('ZCARD', keys.seed), redis.call('ZCARD', keys.leech)
  local replies = { '', has_more and 1 or 0, seeding, leeching }
  if keys[list] then
    local first = rank_after(keys[list])
    local page = redis.call('ZREVRANGE', keys[list], first, first + limit - 1, 'WITHSCORES')
    for _, value in ipairs(page) do
      table.insert(replies, value)
    end
  end
  return replies
end

local keys = { seed = KEYS[1], leech = KEYS[2], stopped = KEYS[3], clients = KEYS[4] }
local replies, wrong = guarded(keys, read)
return replies or { wrong, 0, 0, 0 }
