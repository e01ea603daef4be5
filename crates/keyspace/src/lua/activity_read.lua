-- Removes expired activity of one user (A4), then reads counts and a page of a list (A5).
--
-- KEYS     seed, leech, stopped, clients
-- ARGV[1]  cutoff: reports of this time or before have expired, plus the extra silence of their client
-- ARGV[2]  maximum number of torrents to remove
-- ARGV[3]  maximum number of clients of one user on one torrent
-- ARGV[4]  "seed" or "leech" for a page of that list, "-" for none
-- ARGV[5]  torrents per page
-- ARGV[6]  the page begins after this ts; -1 for the first page
-- ARGV[7]  and after this infohash
-- Returns the name of a key of the wrong type, or ''; the number of torrents with expired reports; 1 if there may be
-- more, else 0; the lowest cutoff at which a remaining report expires, or -1; the lengths of seed and leech; the page as
-- alternating infohashes and ts, newest first.

local cutoff, remove_max, clients_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local list, limit, after_at, after_infohash = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

-- Maximum number of torrents per set that are kept although their last announce was before the cutoff.
local KEPT_MAX = 10000
-- Torrents read from a set per command.
local PAGE = 1000

-- The lowest cutoff at which a kept report expires.
local next_due = nil
local function note_due(at)
  if at and (not next_due or at < next_due) then
    next_due = at
  end
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
        note_due(expiry)
      else
        -- Removed even if the hash has no reports of it; added again by `update` if one has not expired.
        redis.call('ZREM', keys[name], infohash)
        update(keys, infohash, {}, cutoff, clients_max)
        removed = removed + 1
      end
    end
    if #old < count then
      break
    end
  end
  return removed
end

-- Removes expired reports from up to `remove_max` torrents. Returns the number of torrents, and 1 if there may be more.
local function expire(keys)
  local torrents = 0
  for _, name in pairs(SETS) do
    torrents = torrents + expire_set(keys, name, remove_max - torrents)
  end
  return torrents, torrents >= remove_max and 1 or 0
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
      update(keys, infohash, {}, cutoff, clients_max)
    end
  end
end

-- The lowest cutoff at which a remaining report expires.
local function next_expiry(keys)
  for _, name in pairs(SETS) do
    local first = redis.call('ZRANGEBYSCORE', keys[name], '(' .. cutoff, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    note_due(tonumber(first[2]))
  end
  return next_due
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
  local torrents, has_more = expire(keys)
  if has_more == 0 then
    sync_hash(keys)
  end
  local seeding, leeching = redis.call('ZCARD', keys.seed), redis.call('ZCARD', keys.leech)
  local replies = { '', torrents, has_more, next_expiry(keys) or -1, seeding, leeching }
  if keys[list] then
    local first = rank_after(keys[list])
    local page = redis.call('ZREVRANGE', keys[list], first, first + limit - 1, 'WITHSCORES')
    for _, value in ipairs(page) do
      table.insert(replies, value)
    end
  end
  return replies
end

local replies, wrong = guarded(keys_after(0), read)
return replies or { wrong, 0, 0, -1, 0, 0 }
