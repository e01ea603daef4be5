-- Removes torrents from the indexes of the mirror (M10), and their leechers and seeders from the statistics (M9).
-- Announces stay counted, under a member that is not a torrent id.
--
-- KEYS[1…4]  indexes (sorted sets of torrents) by announces (private), leechers, seeders, snatches
-- KEYS[5…7]  statistics (strings): announces, leechers, seeders
-- ARGV[1]    member under which the announces stay counted
-- ARGV[2…]   torrents
-- Returns the number of torrents that were in the index by announces.

local removed = 0
for position = 2, #ARGV do
  local torrent = ARGV[position]
  local announces = redis.call('ZSCORE', KEYS[1], torrent)
  if announces then
    redis.call('ZINCRBY', KEYS[1], announces, ARGV[1])
    removed = removed + 1
  end
  for number = 2, 3 do
    local score = redis.call('ZSCORE', KEYS[number], torrent)
    if score then
      redis.call('INCRBY', KEYS[4 + number], string.format('%d', -tonumber(score)))
    end
  end
  for number = 1, 4 do
    redis.call('ZREM', KEYS[number], torrent)
  end
end
return removed
