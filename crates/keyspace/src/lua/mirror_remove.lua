-- Takes torrents out of the indexes of the mirror (M10), and what they counted out of the statistics (M9). Announces
-- stay counted: under a name that is no torrent's.
--
-- KEYS  indexes (sorted sets of torrents) by announces (ours), leechers, seeders, snatches;
--       statistics (strings): announces, leechers, seeders
-- ARGV  the name under which announces stay counted; the torrents
-- Returns how many torrents were there

local forgotten = 0
for position = 2, #ARGV do
  local torrent = ARGV[position]
  local announces = redis.call('ZSCORE', KEYS[1], torrent)
  if announces then
    redis.call('ZINCRBY', KEYS[1], announces, ARGV[1])
    forgotten = forgotten + 1
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
return forgotten
