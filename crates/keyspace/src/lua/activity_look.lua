-- Removes what is too old of one user (A4), then reads (A5).
--
-- KEYS  seed, leech, clients, seen
-- ARGV  cutoff: what was said then, or before, counts no more
--       the most clients to be removed; the most clients of one user on one torrent
--       seed or leech for a page of that list, or - for none; how many torrents
--       the place behind which the page begins, as ts and infohash; ts -1 for the beginning
-- Returns the name of a key that has another type, or an empty text; how many torrents had something too old; 1 if more
-- may have, else 0; the least ts that is left, or -1; the lengths of seed and leech; the page, as infohash and ts in
-- turn, newest first

local cutoff, remove_max, clients_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local list, limit, after_at, after_infohash = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

local function remove_old(keys)
  local old = redis.call('ZRANGEBYSCORE', keys.seen, '-inf', cutoff, 'LIMIT', 0, remove_max)
  local done, torrents = {}, 0
  for _, member in ipairs(old) do
    local infohash = string.sub(member, 1, 40)
    if not done[infohash] then
      done[infohash] = true
      torrents = torrents + 1
      update(keys, infohash, {}, cutoff, clients_max)
    end
    -- Whatever the hash says of it, or does not: this is the end of it.
    redis.call('ZREM', keys.seen, member)
  end
  if #old < remove_max then
    -- What another program has put there.
    redis.call('ZREMRANGEBYSCORE', keys.seed, '-inf', cutoff)
    redis.call('ZREMRANGEBYSCORE', keys.leech, '-inf', cutoff)
  end
  return torrents, #old >= remove_max and 1 or 0
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
  local oldest = redis.call('ZRANGE', keys.seen, 0, 0, 'WITHSCORES')[2]
  -- Asking for the length first spares what is no hash, and so none of ours.
  if redis.call('HLEN', keys.clients) > 0 and not oldest then
    redis.call('DEL', keys.clients)
  end
  local seeding, leeching = redis.call('ZCARD', keys.seed), redis.call('ZCARD', keys.leech)
  local replies = { '', torrents, has_more, tonumber(oldest or -1), seeding, leeching }
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
