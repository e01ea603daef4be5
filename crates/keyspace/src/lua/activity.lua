-- What is known of a user's torrents, shared by the scripts of activity (A1 to A4).
--
-- seed, leech  sorted sets of infohashes by the last announce: what other programs read
-- clients      hash: infohash -> 29 bytes for each client: its number (8), a letter (s seeds, l leeches, x stopped),
--              ts (4), origin (16); numbers with the greatest byte first. A plain heartbeat has no origin: 15 zeros,
--              then 1 if it seeds, else 0.
-- seen         sorted set: infohash (40), client (8), letter -> ts of its last announce. A heartbeat that changes
--              nothing else raises this and not the hash, so the later of the two is when the client last spoke.
--
-- A client is in the hash and, under the same letter, in seen, or in neither. Text is never compared by < here: Redis
-- compares it by the rules of the machine's language.

local CLIENT_BYTES = 29
local RANKS = { s = string.rep('\0', 15) .. '\1', l = string.rep('\0', 16), x = string.rep('\0', 16) }

-- Whether report a was given after report b: by ts, then by origin.
local function is_later(a, b)
  for position = 10, CLIENT_BYTES do
    local x, y = string.byte(a, position), string.byte(b, position)
    if x ~= y then
      return x > y
    end
  end
  return false
end

local function time_of(report)
  return (struct.unpack('>I4', report, 10))
end

local function member_of(infohash, report)
  return infohash .. string.sub(report, 1, 9)
end

-- The reports of the clients of a torrent that still count. The others leave seen; whoever calls this writes the hash.
local function read_reports(keys, infohash, cutoff)
  local record = redis.call('HGET', keys.clients, infohash)
  local reports = {}
  if not record or #record % CLIENT_BYTES ~= 0 then
    return reports
  end
  for first = 1, #record, CLIENT_BYTES do
    local report = string.sub(record, first, first + CLIENT_BYTES - 1)
    local member = member_of(infohash, report)
    local at = tonumber(redis.call('ZSCORE', keys.seen, member) or cutoff)
    if at <= cutoff then
      redis.call('ZREM', keys.seen, member)
    elseif at > time_of(report) then
      local letter = string.sub(report, 9, 9)
      table.insert(reports, string.sub(report, 1, 9) .. struct.pack('>I4', at) .. RANKS[letter])
    else
      table.insert(reports, report)
    end
  end
  return reports
end

-- Takes one report into the list, unless a later one of the same client is known.
local function take(keys, infohash, reports, news)
  local place = #reports + 1
  for index, known in ipairs(reports) do
    if string.sub(known, 1, 8) == string.sub(news, 1, 8) then
      if not is_later(news, known) then
        return
      end
      if string.byte(known, 9) ~= string.byte(news, 9) then
        redis.call('ZREM', keys.seen, member_of(infohash, known))
      end
      place = index
    end
  end
  reports[place] = news
  redis.call('ZADD', keys.seen, time_of(news), member_of(infohash, news))
end

-- Forgets the longest silent clients beyond the most there may be; returns how many.
local function forget_crowd(keys, infohash, reports, clients_max)
  local forgotten = 0
  while #reports > clients_max do
    local oldest = 1
    for index = 2, #reports do
      if is_later(reports[oldest], reports[index]) then
        oldest = index
      end
    end
    redis.call('ZREM', keys.seen, member_of(infohash, table.remove(reports, oldest)))
    forgotten = forgotten + 1
  end
  return forgotten
end

-- Puts a torrent where its clients' reports say: seeding if any seeds, else leeching if any leeches, else nowhere.
local function place(keys, infohash, reports)
  local latest = {}
  for _, report in ipairs(reports) do
    local letter, at = string.sub(report, 9, 9), time_of(report)
    latest[letter] = math.max(latest[letter] or 0, at)
  end
  if latest.s then
    redis.call('ZADD', keys.seed, latest.s, infohash)
    redis.call('ZREM', keys.leech, infohash)
  elseif latest.l then
    redis.call('ZADD', keys.leech, latest.l, infohash)
    redis.call('ZREM', keys.seed, infohash)
  else
    redis.call('ZREM', keys.seed, infohash)
    redis.call('ZREM', keys.leech, infohash)
  end
  if #reports == 0 then
    redis.call('HDEL', keys.clients, infohash)
  else
    redis.call('HSET', keys.clients, infohash, table.concat(reports))
  end
end

-- Brings a torrent up to date, with news of its clients or without. Returns how many clients had to be forgotten.
local function update(keys, infohash, news, cutoff, clients_max)
  local reports = read_reports(keys, infohash, cutoff)
  local forgotten = 0
  for _, report in ipairs(news) do
    take(keys, infohash, reports, report)
    forgotten = forgotten + forget_crowd(keys, infohash, reports, clients_max)
  end
  place(keys, infohash, reports)
  return forgotten
end

-- The four keys of a user, which begin behind this position of KEYS.
local function keys_behind(position)
  return {
    seed = KEYS[position + 1],
    leech = KEYS[position + 2],
    clients = KEYS[position + 3],
    seen = KEYS[position + 4],
  }
end

-- Runs a step of one user. Of a user with a key of another type it returns nil and that key's name here; any other
-- error ends the script.
local function guarded(keys, step, ...)
  local ok, result = pcall(step, keys, ...)
  if ok then
    return result
  end
  local text = type(result) == 'table' and result.err or tostring(result)
  if string.find(text, 'WRONGTYPE', 1, true) then
    for name, kind in pairs({ seed = 'zset', leech = 'zset', clients = 'hash', seen = 'zset' }) do
      local found = redis.call('TYPE', keys[name]).ok
      if found ~= kind and found ~= 'none' then
        return nil, name
      end
    end
  end
  error(result, 0)
end

