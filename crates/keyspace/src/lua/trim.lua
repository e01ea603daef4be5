-- Removes old entries, except those that any consumer group, of any program, has yet to acknowledge.
--
-- KEYS[1]  stream
-- ARGV[1]  entries with lower ids are removed
-- ARGV[2]  1 to keep a stream without groups unchanged, else 0
-- Returns the number of removed entries, and the group that prevented the removal of more, if any.

-- An id is two decimal numbers of up to 64 bits, which Lua numbers cannot represent exactly.
local function less_number(a, b)
  if #a ~= #b then
    return #a < #b
  end
  return a < b
end

local function less(a, b)
  local a_ms, a_seq = string.match(a, '^(%d+)-(%d+)$')
  local b_ms, b_seq = string.match(b, '^(%d+)-(%d+)$')
  if a_ms ~= b_ms then
    return less_number(a_ms, b_ms)
  end
  return less_number(a_seq, b_seq)
end

local function plus_one(number)
  local head, digit, nines = string.match(number, '^(%d-)([0-8])(9*)$')
  if not head then
    return '1' .. string.rep('0', #number)
  end
  return head .. (digit + 1) .. string.rep('0', #nines)
end

local function next_id(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  if seq == '18446744073709551615' then
    return plus_one(ms) .. '-0'
  end
  return ms .. '-' .. plus_one(seq)
end

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {0}
end

local bound, slowest = nil, nil
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local field = {}
  for i = 1, #group, 2 do
    field[group[i]] = group[i + 1]
  end
  local needed = next_id(field['last-delivered-id'])
  if field['pending'] > 0 then
    needed = redis.call('XPENDING', KEYS[1], field['name'])[2]
  end
  if not bound or less(needed, bound) then
    bound, slowest = needed, field['name']
  end
end
if not bound and ARGV[2] == '1' then
  return {0}
end

local before = ARGV[1]
if not bound or not less(bound, before) then
  return {redis.call('XTRIM', KEYS[1], 'MINID', '=', before)}
end
local removed = redis.call('XTRIM', KEYS[1], 'MINID', '=', bound)
if #redis.call('XRANGE', KEYS[1], '-', '(' .. before, 'COUNT', 1) > 0 then
  return {removed, slowest}
end
return {removed}
