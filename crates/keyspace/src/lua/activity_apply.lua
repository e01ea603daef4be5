-- Takes what the clients of one or more users say about their torrents (A2, A3). Each user fares for itself.
--
-- KEYS  for each user: seed, leech, clients, seen
-- ARGV  cutoff: what was said then, or before, counts no more
--       the most clients of one user on one torrent
--       1 if heartbeats are worth trying first as such, else 0
--       for each user: how many changes; for each change, by infohash: infohash, ts, report
-- Returns how many clients were forgotten; then, for each user of whom there is something to say, its number from 1
-- and 'new' if nothing was stored of it, or the name of the key that has another type

local cutoff, clients_max, is_trying = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local lists = { s = 'seed', l = 'leech' }

-- A heartbeat of a client that goes on as it did; false if it is anything else.
local function refresh(keys, infohash, at, report)
  local letter = string.sub(report, 9, 9)
  if letter == 'x' or string.sub(report, 14, CLIENT_BYTES) ~= RANKS[letter] then
    return false
  end
  return redis.call('ZADD', keys.seen, 'XX', 'GT', 'CH', at, member_of(infohash, report)) == 1
    and redis.call('ZADD', keys[lists[letter]], 'XX', 'GT', 'CH', at, infohash) == 1
end

local function apply(keys, first, count)
  local is_new = redis.call('EXISTS', keys.seen) == 0
  local forgotten, position, last = 0, first, first + 3 * count
  while position < last do
    local infohash, news = ARGV[position], {}
    local at = ARGV[position + 1]
    while position < last and ARGV[position] == infohash do
      table.insert(news, ARGV[position + 2])
      position = position + 3
    end
    if not (is_trying and #news == 1 and refresh(keys, infohash, at, news[1])) then
      forgotten = forgotten + update(keys, infohash, news, cutoff, clients_max)
    end
  end
  return { forgotten, is_new }
end

local replies = { 0 }
local position = 4
for user = 1, #KEYS / 4 do
  local count = tonumber(ARGV[position])
  local result, wrong = guarded(keys_behind((user - 1) * 4), apply, position + 1, count)
  if not result then
    table.insert(replies, user)
    table.insert(replies, wrong)
  else
    replies[1] = replies[1] + result[1]
    if result[2] then
      table.insert(replies, user)
      table.insert(replies, 'new')
    end
  end
  position = position + 1 + 3 * count
end
return replies
