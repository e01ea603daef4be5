-- Applies reports of clients of one or more users (A2, A3). A failure for one user does not affect the others.
--
-- KEYS     for each user: seed, leech, stopped, clients
-- ARGV[1]  cutoff: reports of this time or before have expired, plus the extra silence of their client
-- ARGV[2]  maximum number of clients of one user on one torrent
-- ARGV[3…] for each user: number of changes, then for each change, ordered by infohash: infohash, report
-- Returns the number of evicted clients; then pairs of a user's index from 1 and 'new' if nothing was stored of the
-- user before, or the name of the key that has the wrong type.

local cutoff, clients_max = tonumber(ARGV[1]), tonumber(ARGV[2])

local function apply(keys, first, count)
  local is_new = redis.call('EXISTS', keys.clients) == 0
  local evicted, position, last = 0, first, first + 2 * count
  while position < last do
    local infohash, new = ARGV[position], {}
    while position < last and ARGV[position] == infohash do
      table.insert(new, ARGV[position + 1])
      position = position + 2
    end
    evicted = evicted + update(keys, infohash, new, cutoff, clients_max)
  end
  return { evicted, is_new }
end

local replies = { 0 }
local position = 3
for user = 1, #KEYS / 4 do
  local count = tonumber(ARGV[position])
  local result, wrong = guarded(keys_after((user - 1) * 4), apply, position + 1, count)
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
