-- Mends keys of one torrent of the mirror, if nothing was applied to it since they were looked at.
--
-- KEYS  what is known of the torrent (hash, ours); then every key that is to be changed
-- ARGV  the watermark as it was read; then for each command: how many arguments it has, its name, the number of its
--       key, from 1, and the arguments
-- Returns how many commands were carried out, or -1 if something was applied meanwhile

if (redis.call('HGET', KEYS[1], 'w') or '') ~= ARGV[1] then
  return -1
end
local position, done = 2, 0
while position <= #ARGV do
  local count = tonumber(ARGV[position])
  local arguments = {}
  for offset = 1, count do
    arguments[offset] = ARGV[position + 2 + offset]
  end
  redis.call(ARGV[position + 1], KEYS[tonumber(ARGV[position + 2])], unpack(arguments))
  position, done = position + 3 + count, done + 1
end
return done
