-- Removes what is too old of one user (A4), then reads (A5).
--
-- KEYS  seed, leech, stopped, clients
-- ARGV  cutoff: what was said then, or before, counts no more, unless the client may be silent for longer
--       the most torrents to be removed; the most clients of one user on one torrent
--       seed or leech for a page of that list, or - for none; how many torrents
--       the place behind which the page begins, as ts and infohash; ts -1 for the beginning
-- Returns the name of a key that has another type, or an empty text; how many torrents had something too old; 1 if more
-- may have, else 0; the least cutoff at which something that is left is too old, or -1; the lengths of seed and leech; the page, as infohash and ts in
-- turn, newest first

local cutoff, remove_max, clients_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local list, limit, after_at, after_infohash = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

-- Torrents in one look that are kept although their last announce was before the cutoff, at most.
local KEPT_MAX = 10000
-- Torrents read from a set at once.
local PAGE = 1000

-- The least moment at which something that was kept counts no more.
local next_due = nil
local function note_due(at)
  if at and (not next_due or at < next_due) then
    next_due = at
  end
end

-- Removes what is too old of one set, of no more torrents than there is room for. Returns of how many.
local function remove_old_of(keys, name, room)
  local removed, kept = 0, 0
  while removed < room and kept < KEPT_MAX do
    local count = math.min(room - removed, PAGE)
    local old = redis.call('ZRANGEBYSCORE', keys[name], '-inf', cutoff, 'LIMIT', kept, count)
    for _, infohash in ipairs(old) do
      local letter, _, until_when = standing_of(read_reports(keys, infohash))
      if letter and SETS[letter] == name and until_when > cutoff then
        kept = kept + 1
        note_due(until_when)
      else
        -- Whatever is known of it, or not: it goes, and if a client is left that is not too old, it comes back.
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

-- Removes what is too old, of no more torrents than allowed. Returns of how many, and 1 if there may be more.
local function remove_old(keys)
  local torrents = 0
  for _, name in pairs(SETS) do
    torrents = torrents + remove_old_of(keys, name, remove_max - torrents)
  end
  return torrents, torrents >= remove_max and 1 or 0
end

-- Other programs remove what is old from the sets by themselves (A4), and know nothing of the hash. Where it holds
-- more than the sets do, each of its torrents is looked at.
local function follow_others(keys)
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

-- The least cutoff at which something that is left is too old.
local function oldest_of(keys)
  for _, name in pairs(SETS) do
    local first = redis.call('ZRANGEBYSCORE', keys[name], '(' .. cutoff, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    note_due(tonumber(first[2]))
  end
  return next_due
end

-- Whether infohash a comes before b in a list that begins with the greatest.
local function is_greater(a, b)
  for position = 1, math.min(#a, #b) do
    local x, y = string.byte(a, position), string.byte(b, position)
    if x ~= y then
      return x > y
    end
  end
  return #a > #b
end

-- How many torrents of the list come before the page. Those of one second stand in order, so halving finds the place.
local function rank_behind(key)
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

local function look(keys)
  local torrents, has_more = remove_old(keys)
  if has_more == 0 then
    follow_others(keys)
  end
  local seeding, leeching = redis.call('ZCARD', keys.seed), redis.call('ZCARD', keys.leech)
  local replies = { '', torrents, has_more, oldest_of(keys) or -1, seeding, leeching }
  if keys[list] then
    local first = rank_behind(keys[list])
    local page = redis.call('ZREVRANGE', keys[list], first, first + limit - 1, 'WITHSCORES')
    for _, part in ipairs(page) do
      table.insert(replies, part)
    end
  end
  return replies
end

local replies, wrong = guarded(keys_behind(0), look)
return replies or { wrong, 0, 0, -1, 0, 0 }
