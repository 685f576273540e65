/**
 * What is done in Redis at once, as nobody else sees it half done. Keys: `chat:session:<thread>` is a hash (seq, dropped, bytes, run, cancelled,
 * cut, claimed, and waiting, the JSON of those that wait for the run), `chat:log:<thread>` a stream whose ids are `<seq>-0`, `chat:leases` the threads that
 * have a run, by the time at which its lease runs out, `chat:lines` the sessions in which runs wait. They are not hashed to one node, so a cluster
 * will not do.
 */
export const LEASES_KEY = 'chat:leases';
export const SESSION_PREFIX = 'chat:session:';
export const LOG_PREFIX = 'chat:log:';
export const WAKE_CHANNEL = 'chat:wake';
const LINES_KEY = 'chat:lines';

/** Numbers of 53 bits: as a text of their own, Lua would round them. */
const COMMON = `
local function text(number) return string.format('%.0f', number) end
local function clock() local t = redis.call('TIME') return tonumber(t[1]) * 1000000 + tonumber(t[2]) end
local function now() return math.floor(clock() / 1000) end
`;

/** Those that wait are kept as `{ id, till, cancelled }`, in their order. */
const LINE = `
local function waiting() return cjson.decode(redis.call('HGET', KEYS[1], 'waiting') or '[]') end
local function place(line, run)
  for at, entry in ipairs(line) do if entry.id == run then return at end end
end
local function keep(line)
  if #line == 0 then
    redis.call('HDEL', KEYS[1], 'waiting')
    redis.call('SREM', '${LINES_KEY}', KEYS[1])
  else
    redis.call('HSET', KEYS[1], 'waiting', cjson.encode(line))
    redis.call('SADD', '${LINES_KEY}', KEYS[1])
  end
end
`;

/**
 * Whether a run has its thread. That a thread was claimed is never forgotten of it; where it is, Redis has lost what it had, and a run that was under way takes
 * its thread again.
 */
const HOLDS = `
local function holds(session, run, wasClaimed)
  if wasClaimed == '0' or redis.call('HEXISTS', session, 'claimed') == 1 then
    return redis.call('HGET', session, 'run') == run
  end
  redis.call('HSET', session, 'claimed', '1', 'run', run)
  redis.call('HSETNX', session, 'seq', text(clock()))
  return true
end
`;

/** KEYS session, log. ARGV thread, events to keep, bytes to keep, idle ms, then head and body of each event. */
export const APPEND: string = `${COMMON}
local seq = tonumber(redis.call('HGET', KEYS[1], 'seq')) or clock()
local bytes = tonumber(redis.call('HGET', KEYS[1], 'bytes')) or 0
local first = seq
for at = 5, #ARGV, 2 do
  seq = seq + 1
  redis.call('XADD', KEYS[2], text(seq) .. '-0', 'h', ARGV[at], 'b', ARGV[at + 1])
  bytes = bytes + #ARGV[at + 1]
end
local kept, dropped = redis.call('XLEN', KEYS[2]), nil
local eventsMax, bytesMax = tonumber(ARGV[2]), tonumber(ARGV[3])
local from = '-'
while kept > eventsMax or bytes > bytesMax do
  local oldest = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', 100)
  if #oldest == 0 then break end
  for _, event in ipairs(oldest) do
    if kept <= eventsMax and bytes <= bytesMax then break end
    kept = kept - 1
    bytes = bytes - #event[2][4]
    dropped = event[1]
  end
  from = '(' .. dropped
end
if dropped then
  redis.call('XTRIM', KEYS[2], 'MINID', text(tonumber(dropped:match('^%d+')) + 1) .. '-0')
  redis.call('HSET', KEYS[1], 'dropped', dropped:match('^%d+'))
end
redis.call('HSET', KEYS[1], 'seq', text(seq), 'bytes', text(bytes))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PUBLISH', '${WAKE_CHANNEL}', 'e' .. ARGV[1])
return text(seq)
`;

/** KEYS session, log. ARGV first id, count. */
export const READ = `
return {redis.call('HGET', KEYS[1], 'dropped') or '0', redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])}
`;

/** KEYS session, leases, log. ARGV thread, run, lease ms, idle ms, place among those that wait, how many may. */
export const CLAIM: string = `${COMMON}${LINE}
local holder = redis.call('HGET', KEYS[1], 'run')
if holder and ARGV[5] ~= '' then
  local line = waiting()
  if #line >= tonumber(ARGV[6]) then return false end
  table.insert(line, ARGV[5] == 'next' and 1 or #line + 1, { id = ARGV[2], till = now() + ARGV[3] })
  keep(line)
end
if holder then return holder end
redis.call('HSET', KEYS[1], 'claimed', '1', 'run', ARGV[2])
redis.call('HDEL', KEYS[1], 'cancelled', 'cut')
redis.call('HSETNX', KEYS[1], 'seq', text(clock()))
redis.call('ZADD', KEYS[2], now() + ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return ARGV[2]
`;

/** KEYS session, leases, log. ARGV thread, run, lease ms, idle ms, whether this instance has claimed it. */
export const RENEW: string = `${COMMON}${LINE}${HOLDS}
local line = waiting()
local at = place(line, ARGV[2])
local hasThread = not at and holds(KEYS[1], ARGV[2], ARGV[5])
if not at and (not hasThread or redis.call('HEXISTS', KEYS[1], 'cut') == 1) then return 'lost' end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
if at then
  line[at].till = now() + ARGV[3]
  keep(line)
  return 'waiting'
end
redis.call('ZADD', KEYS[2], now() + ARGV[3], ARGV[1])
if redis.call('HEXISTS', KEYS[1], 'cancelled') == 1 then return 'cancelled' end
return 'held'
`;

/** KEYS session, leases, log. ARGV thread, run, idle ms, head and body of its last event, whether this instance has claimed it. */
export const END: string = `${COMMON}${LINE}${HOLDS}
local line = waiting()
local at = place(line, ARGV[2])
local hasThread = not at and holds(KEYS[1], ARGV[2], ARGV[6])
if not hasThread and not at then return 0 end
local seq = tonumber(redis.call('HGET', KEYS[1], 'seq')) + 1
redis.call('XADD', KEYS[3], text(seq) .. '-0', 'h', ARGV[4], 'b', ARGV[5])
redis.call('HSET', KEYS[1], 'seq', text(seq))
redis.call('HINCRBY', KEYS[1], 'bytes', #ARGV[5])
if hasThread then
  redis.call('HDEL', KEYS[1], 'run', 'cancelled', 'cut')
  redis.call('ZREM', KEYS[2], ARGV[1])
end
local gone = table.remove(line, at or 1)
keep(line)
if hasThread and gone then
  redis.call('HSET', KEYS[1], 'run', gone.id)
  if gone.cancelled then redis.call('HSET', KEYS[1], 'cancelled', '1') end
  redis.call('ZADD', KEYS[2], gone.till, ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
redis.call('PUBLISH', '${WAKE_CHANNEL}', 'r' .. ARGV[1])
return 1
`;

/** KEYS session. ARGV thread, run. */
export const CANCEL: string = `${LINE}
local line = waiting()
local at = place(line, ARGV[2])
if at then
  line[at].cancelled = true
  keep(line)
elseif redis.call('HGET', KEYS[1], 'run') == ARGV[2] then
  redis.call('HSET', KEYS[1], 'cancelled', '1')
else
  return 0
end
redis.call('PUBLISH', '${WAKE_CHANNEL}', 'r' .. ARGV[1])
return 1
`;

/** KEYS leases. ARGV lease ms, ms for which a lease of one that waits has to have run out. Gives thread and run of each, one after the other. */
export const TAKE_CUT: string = `${COMMON}
local cut = {}
for _, thread in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. text(now()), 'LIMIT', 0, 100)) do
  local session = '${SESSION_PREFIX}' .. thread
  local run = redis.call('HGET', session, 'run')
  if run then
    redis.call('HSET', session, 'cut', '1')
    redis.call('ZADD', KEYS[1], now() + ARGV[1], thread)
    table.insert(cut, thread)
    table.insert(cut, run)
  else
    redis.call('ZREM', KEYS[1], thread)
  end
end
for _, session in ipairs(redis.call('SMEMBERS', '${LINES_KEY}')) do
  local thread, line = session:sub(${SESSION_PREFIX.length + 1}), redis.call('HGET', session, 'waiting')
  if not line then redis.call('SREM', '${LINES_KEY}', session) end
  local isHeld = redis.call('HEXISTS', session, 'cut') == 0 and tonumber(redis.call('ZSCORE', KEYS[1], thread) or 0) >= now()
  for _, entry in ipairs(isHeld and cjson.decode(line or '[]') or {}) do
    if entry.till < now() - ARGV[2] then
      table.insert(cut, thread)
      table.insert(cut, entry.id)
    end
  end
end
return cut
`;

/** KEYS session, leases, log. ARGV thread, ms for which the number is kept: the next log of that name goes on with it. */
export const DELETE = `
local seq, claimed = unpack(redis.call('HMGET', KEYS[1], 'seq', 'claimed'))
redis.call('DEL', KEYS[1], KEYS[3])
redis.call('SREM', '${LINES_KEY}', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
if seq then
  redis.call('HSET', KEYS[1], 'seq', seq)
  if claimed then redis.call('HSET', KEYS[1], 'claimed', '1') end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('PUBLISH', '${WAKE_CHANNEL}', 'r' .. ARGV[1])
return 1
`;
