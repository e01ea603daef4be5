-- Notes that a torrent of the mirror has another infohash now: what others read under the old one goes, unless another
-- torrent has that one by now. The next entries bring everything back under the new one.
--
-- KEYS  what is known of the torrent (hash, ours); under the old infohash: its counts (hash), its active peers (set),
--       whose counts these are (string, ours)
-- ARGV  torrent; the old infohash; the new one
-- Returns 1, or 0 if the torrent was not known by the old one

if redis.call('HGET', KEYS[1], 'h') ~= ARGV[2] then
  return 0
end
if redis.call('GET', KEYS[4]) == ARGV[1] then
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
end
redis.call('HSET', KEYS[1], 'h', ARGV[3])
return 1
