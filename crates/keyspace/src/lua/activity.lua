-- What is known of a user's torrents, shared by the scripts of activity (A1 to A4).
--
-- seed, leech  sorted sets of infohashes by the last announce: what other programs read
-- stopped      the same of torrents that only clients that said goodbye are remembered of
-- clients      hash: infohash -> 33 bytes for each client: its number (8), a letter (s seeds, l leeches, x stopped),
--              how many seconds longer than usual it may be silent, because it was told a longer interval (4), ts (4),
--              origin (16); numbers with the greatest byte first. A plain heartbeat that is its client's
--              first entry of a second has no origin: 15 zeros, then 1 if it seeds, else 0.
--
-- A torrent is in the hash and in one of the sets, or in none. Where it has a single client, a heartbeat that changes
-- nothing else raises the time in the set and not in the hash: the later of the two is when that client last spoke.
-- Where it has several, the times in the hash count. Text is never compared by < here: Redis compares it by the rules
-- of the machine's language.

local CLIENT_BYTES, TS_AT = 33, 14
local SETS = { s = 'seed', l = 'leech', x = 'stopped' }
local HEARTBEATS = { s = string.rep('\0', 15) .. '\1', l = string.rep('\0', 16) }

-- Whether report a was given after report b: by ts, then by origin.
local function is_later(a, b)
  for position = TS_AT, CLIENT_BYTES do
    local x, y = string.byte(a, position), string.byte(b, position)
    if x ~= y then
      return x > y
    end
  end
  return false
end

local function time_of(report)
  return (struct.unpack('>I4', report, TS_AT))
end

-- A report counts until the cutoff has reached this moment.
local function counts_until(report)
  return time_of(report) + struct.unpack('>I4', report, 10)
end

-- What a torrent's clients amount to: seeding if any seeds, else leeching if any leeches, else stopped, with the last
-- time that one of them said so, and until when that counts; nil of nothing.
local function standing_of(reports)
  local latest, until_when = {}, {}
  for _, report in ipairs(reports) do
    local letter = string.sub(report, 9, 9)
    latest[letter] = math.max(latest[letter] or 0, time_of(report))
    until_when[letter] = math.max(until_when[letter] or 0, counts_until(report))
  end
  local letter = latest.s and 's' or latest.l and 'l' or latest.x and 'x' or nil
  return letter, latest[letter or ''], until_when[letter or '']
end

-- The reports of a torrent's clients, each with the last time that client spoke.
local function read_reports(keys, infohash)
  local record = redis.call('HGET', keys.clients, infohash)
  local reports = {}
  if not record or #record % CLIENT_BYTES ~= 0 then
    return reports
  end
  for first = 1, #record, CLIENT_BYTES do
    table.insert(reports, string.sub(record, first, first + CLIENT_BYTES - 1))
  end
  local letter = string.sub(record, 9, 9)
  if #reports == 1 and HEARTBEATS[letter] then
    local at = tonumber(redis.call('ZSCORE', keys[SETS[letter]], infohash) or 0)
    if at > time_of(record) then
      reports[1] = string.sub(record, 1, TS_AT - 1) .. struct.pack('>I4', at) .. HEARTBEATS[letter]
    end
  end
  return reports
end

-- Takes one report into the list, unless a later one of the same client is known.
local function take(reports, news)
  for index, known in ipairs(reports) do
    if string.sub(known, 1, 8) == string.sub(news, 1, 8) then
      if is_later(news, known) then
        reports[index] = news
      end
      return
    end
  end
  table.insert(reports, news)
end

-- Forgets the longest silent clients beyond the most there may be; returns how many.
local function forget_crowd(reports, clients_max)
  local forgotten = 0
  while #reports > clients_max do
    local oldest = 1
    for index = 2, #reports do
      if is_later(reports[oldest], reports[index]) then
        oldest = index
      end
    end
    table.remove(reports, oldest)
    forgotten = forgotten + 1
  end
  return forgotten
end

-- Brings a torrent up to date, with news of its clients or without. Returns how many clients had to be forgotten.
-- The hash is written last: what fails before can be done again.
local function update(keys, infohash, news, cutoff, clients_max)
  local known = read_reports(keys, infohash)
  local was = standing_of(known)
  local reports, forgotten = {}, 0
  for _, report in ipairs(known) do
    if counts_until(report) > cutoff then
      table.insert(reports, report)
    end
  end
  for _, report in ipairs(news) do
    take(reports, report)
    forgotten = forgotten + forget_crowd(reports, clients_max)
  end
  local is, at = standing_of(reports)
  if is then
    redis.call('ZADD', keys[SETS[is]], at, infohash)
  end
  if not was and is ~= 'x' then
    -- Nothing is known of it, so nothing of it should be there; should the hash have got lost, this is why A3 holds.
    was = is == 's' and 'l' or 's'
  end
  if was and was ~= is then
    redis.call('ZREM', keys[SETS[was]], infohash)
  end
  if is then
    redis.call('HSET', keys.clients, infohash, table.concat(reports))
  else
    redis.call('HDEL', keys.clients, infohash)
  end
  return forgotten
end

-- The four keys of a user, which begin behind this position of KEYS.
local function keys_behind(position)
  return {
    seed = KEYS[position + 1],
    leech = KEYS[position + 2],
    stopped = KEYS[position + 3],
    clients = KEYS[position + 4],
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
    for name, kind in pairs({ seed = 'zset', leech = 'zset', stopped = 'zset', clients = 'hash' }) do
      local found = redis.call('TYPE', keys[name]).ok
      if found ~= kind and found ~= 'none' then
        return nil, name
      end
    end
  end
  error(result, 0)
end

