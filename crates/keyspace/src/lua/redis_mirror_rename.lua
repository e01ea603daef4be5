-- Changes the infohash of a torrent of the mirror. Public keys of the old infohash are deleted unless another torrent
-- owns them; the next entries write those of the new infohash.
--
-- KEYS[1]  state of the torrent (hash, private)
-- KEYS[2]  old infohash: counts (hash)
-- KEYS[3]  old infohash: active peers (set)
-- KEYS[4]  old infohash: owner, the torrent whose counts these are (string, private)
-- ARGV[1]  torrent
-- ARGV[2]  old infohash
-- ARGV[3]  new infohash
-- Returns 1, or 0 if the torrent does not have the old infohash.

if redis.call('HGET', KEYS[1], 'h') ~= ARGV[2] then
  return 0
end
if redis.call('GET', KEYS[4]) == ARGV[1] then
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
end
redis.call('HSET', KEYS[1], 'h', ARGV[3])
return 1
