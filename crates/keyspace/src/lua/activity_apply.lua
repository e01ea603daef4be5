-- Takes what the clients of one or more users say about their torrents (A2, A3). Each user fares for itself.
--
-- KEYS  for each user: seed, leech, stopped, clients
-- ARGV  cutoff: what was said then, or before, counts no more, unless the client may be silent for longer
--       the most clients of one user on one torrent
--       for each user: how many changes; for each change, by infohash: infohash, report
-- Returns how many clients were forgotten; then, for each user of whom there is something to say, its number from 1
-- and 'new' if nothing was stored of it, or the name of the key that has another type

local cutoff, clients_max = tonumber(ARGV[1]), tonumber(ARGV[2])

local function apply(keys, first, count)
  local is_new = redis.call('EXISTS', keys.clients) == 0
  local forgotten, position, last = 0, first, first + 2 * count
  while position < last do
    local infohash, news = ARGV[position], {}
    while position < last and ARGV[position] == infohash do
      table.insert(news, ARGV[position + 1])
      position = position + 2
    end
    forgotten = forgotten + update(keys, infohash, news, cutoff, clients_max)
  end
  return { forgotten, is_new }
end

local replies = { 0 }
local position = 3
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
  position = position + 1 + 2 * count
end
return replies
