-- Writes counts of torrents to the indexes (M10), and the differences to the statistics (M9). Repeating a call changes
-- nothing, so each statistic is the sum of its index.
--
-- KEYS[1…4]  indexes (sorted sets of torrents) by announces (private), leechers, seeders, snatches
-- KEYS[5…7]  statistics (strings): announces, leechers, seeders
-- ARGV       for each torrent: id, announces, leechers, seeders, snatches
-- Returns the number of changed scores.
--
-- Each key is read before any is written, so that a key of the wrong type leaves all unchanged.

for number = 1, 4 do
  redis.call('ZCARD', KEYS[number])
end
for number = 5, 7 do
  redis.call('INCRBY', KEYS[number], 0)
end

local changes, changed = { 0, 0, 0, 0 }, 0
for position = 1, #ARGV, 5 do
  local torrent = ARGV[position]
  for number = 1, 4 do
    local new = ARGV[position + number]
    local old = redis.call('ZSCORE', KEYS[number], torrent)
    if old ~= new then
      redis.call('ZADD', KEYS[number], new, torrent)
      changed = changed + 1
      changes[number] = changes[number] + tonumber(new) - tonumber(old or 0)
    end
  end
end
for number = 1, 3 do
  if changes[number] ~= 0 then
    redis.call('INCRBY', KEYS[4 + number], changes[number])
  end
end
return changed
