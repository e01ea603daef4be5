-- Brings the counts of torrents into the indexes (M10), and what changed by that into the statistics (M9). Telling the
-- same counts again changes nothing, so the statistics are always the sums of what is in the indexes.
--
-- KEYS  indexes (sorted sets of torrents) by announces (ours), leechers, seeders, snatches;
--       statistics (strings): announces, leechers, seeders
-- ARGV  for each torrent: its number, announces, leechers, seeders, snatches
-- Returns how many scores were others before
--
-- Each key is read before any is written: one of another type changes nothing.

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
