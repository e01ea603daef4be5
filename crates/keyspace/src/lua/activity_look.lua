-- Removes what is too old of one user (A4), then reads (A5).
--
-- KEYS  seed, leech, stopped, clients
-- ARGV  cutoff: what was said then, or before, counts no more
--       the most torrents to be removed; the most clients of one user on one torrent
--       seed or leech for a page of that list, or - for none; how many torrents
--       the place behind which the page begins, as ts and infohash; ts -1 for the beginning
-- Returns the name of a key that has another type, or an empty text; how many torrents had something too old; 1 if more
-- may have, else 0; the least ts that is left, or -1; the lengths of seed and leech; the page, as infohash and ts in
-- turn, newest first

local cutoff, remove_max, clients_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local list, limit, after_at, after_infohash = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

-- Removes what is too old, of no more torrents than allowed. Returns of how many, and 1 if there may be more.
local function remove_old(keys)
  local torrents, has_more = 0, 0
  for _, name in pairs(SETS) do
    local room = remove_max - torrents
    local old = redis.call('ZRANGEBYSCORE', keys[name], '-inf', cutoff, 'LIMIT', 0, room)
    for _, infohash in ipairs(old) do
      -- Whatever is known of it, or not: it goes, and if a client is left that is not too old, it comes back.
      redis.call('ZREM', keys[name], infohash)
      update(keys, infohash, {}, cutoff, clients_max)
    end
    torrents = torrents + #old
    if #old == room then
      has_more = 1
    end
  end
  return torrents, has_more
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

local function oldest_of(keys)
  local oldest = nil
  for _, name in pairs(SETS) do
    local at = tonumber(redis.call('ZRANGE', keys[name], 0, 0, 'WITHSCORES')[2])
    if at and (not oldest or at < oldest) then
      oldest = at
    end
  end
  return oldest
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
