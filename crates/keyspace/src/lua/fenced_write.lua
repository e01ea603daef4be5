-- Executes commands in one slot of a cluster, unless another writer has claimed the slot or its master lost writes.
--
-- KEYS[1]  fence
-- ARGV[1]  the fence as this writer left it
-- ARGV[2]  the fence after this call
-- ARGV[3…] for each command: number of words, words; all keys are in the slot of the fence
-- Returns the reply of each command, errors included; or false if nothing was executed.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return false
end
redis.call('SET', KEYS[1], ARGV[2])
local replies, position = {}, 3
while position <= #ARGV do
  local count = tonumber(ARGV[position])
  table.insert(replies, redis.pcall(unpack(ARGV, position + 1, position + count)))
  position = position + count + 1
end
return replies
