-- Activity of a user: functions shared by the activity scripts (A1 to A4).
--
-- seed, leech  sorted sets of infohashes by the last announce: public
-- stopped      sorted set of the infohashes whose clients have all stopped
-- clients      hash: infohash -> a report of 33 bytes for each client: client id (8), state (s seeding, l leeching,
--              x stopped), extra silence (4; seconds beyond the usual limit, because the client's interval is longer),
--              ts (4), origin (16); big-endian. A regular announce that is its client's first entry of a second has no
--              origin: 15 zeros, then 1 if it seeds, else 0.
--
-- A torrent is in the hash and in one of the sets, or in none. If it has one client, a regular announce that changes only
-- the time is written to the set and not to the hash: the later of both is the client's last announce. If it has several
-- clients, the times in the hash count. Text is not compared with <, which in Lua depends on the locale.

local CLIENT_BYTES, TS_AT = 33, 14
local SETS = { s = 'seed', l = 'leech', x = 'stopped' }
local HEARTBEATS = { s = string.rep('\0', 15) .. '\1', l = string.rep('\0', 16) }

-- Whether report a is later than report b: by ts, then by origin.
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

-- A report expires when the cutoff reaches this time.
local function expires_at(report)
  return time_of(report) + struct.unpack('>I4', report, 10)
end

-- The state of a torrent: seeding if any client seeds, else leeching if any leeches, else stopped; the last announce of a
-- client in that state; when that expires. nil without clients.
local function summary_of(reports)
  local latest, expiry = {}, {}
  for _, report in ipairs(reports) do
    local state = string.sub(report, 9, 9)
    latest[state] = math.max(latest[state] or 0, time_of(report))
    expiry[state] = math.max(expiry[state] or 0, expires_at(report))
  end
  local state = latest.s and 's' or latest.l and 'l' or latest.x and 'x' or nil
  return state, latest[state or ''], expiry[state or '']
end

-- The reports of a torrent's clients, each with the client's last announce.
local function read_reports(keys, infohash)
  local record = redis.call('HGET', keys.clients, infohash)
  local reports = {}
  if not record or #record % CLIENT_BYTES ~= 0 then
    return reports
  end
  for first = 1, #record, CLIENT_BYTES do
    table.insert(reports, string.sub(record, first, first + CLIENT_BYTES - 1))
  end
  local state = string.sub(record, 9, 9)
  if #reports == 1 and HEARTBEATS[state] then
    local at = tonumber(redis.call('ZSCORE', keys[SETS[state]], infohash) or 0)
    if at > time_of(record) then
      reports[1] = string.sub(record, 1, TS_AT - 1) .. struct.pack('>I4', at) .. HEARTBEATS[state]
    end
  end
  return reports
end

-- Adds a report, unless there is a later one of the same client.
local function add_report(reports, new)
  for index, known in ipairs(reports) do
    if string.sub(known, 1, 8) == string.sub(new, 1, 8) then
      if is_later(new, known) then
        reports[index] = new
      end
      return
    end
  end
  table.insert(reports, new)
end

-- Evicts the clients with the oldest reports beyond the maximum. Returns their number.
local function evict_clients(reports, clients_max)
  local evicted = 0
  while #reports > clients_max do
    local oldest = 1
    for index = 2, #reports do
      if is_later(reports[oldest], reports[index]) then
        oldest = index
      end
    end
    table.remove(reports, oldest)
    evicted = evicted + 1
  end
  return evicted
end

-- Removes expired reports of a torrent and adds new ones, if any. Returns the number of evicted clients.
-- The hash is written last, so that a failed call can be repeated.
local function update(keys, infohash, new, cutoff, clients_max)
  local known = read_reports(keys, infohash)
  local before = summary_of(known)
  local reports, evicted = {}, 0
  for _, report in ipairs(known) do
    if expires_at(report) > cutoff then
      table.insert(reports, report)
    end
  end
  for _, report in ipairs(new) do
    add_report(reports, report)
    evicted = evicted + evict_clients(reports, clients_max)
  end
  local after, at = summary_of(reports)
  if after then
    redis.call('ZADD', keys[SETS[after]], at, infohash)
  end
  if not before and after ~= 'x' then
    -- If the hash was lost, the torrent may still be in the other list, which would violate A3.
    before = after == 's' and 'l' or 's'
  end
  if before and before ~= after then
    redis.call('ZREM', keys[SETS[before]], infohash)
  end
  if after then
    redis.call('HSET', keys.clients, infohash, table.concat(reports))
  else
    redis.call('HDEL', keys.clients, infohash)
  end
  return evicted
end

-- The four keys of a user, after this position of KEYS.
local function keys_after(position)
  return {
    seed = KEYS[position + 1],
    leech = KEYS[position + 2],
    stopped = KEYS[position + 3],
    clients = KEYS[position + 4],
  }
end

-- Runs a step for one user. If a key of the user has the wrong type, returns nil and its name as above; any other error
-- ends the script.
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

