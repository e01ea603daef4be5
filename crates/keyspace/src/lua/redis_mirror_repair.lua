-- Repairs keys of one torrent of the mirror, unless entries were applied to it since they were read.
--
-- KEYS[1]  state of the torrent (hash, private)
-- KEYS[2…] other keys to change
-- ARGV[1]  watermark when the keys were read
-- ARGV[2…] for each command: number of arguments, name, index of its key in KEYS, arguments
-- Returns the number of executed commands, or -1 if the watermark has moved.

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
