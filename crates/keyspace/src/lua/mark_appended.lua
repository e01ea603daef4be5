-- Notes the number of the batch that the same transaction has just appended, unless the appending failed because the
-- key holds no stream: then the batch is not stored, and must not look as if it were.
-- KEYS[1] the stream
-- KEYS[2] the producer's last batch
-- ARGV[1] the number of the batch
-- ARGV[2] seconds until the note is forgotten
if redis.call('TYPE', KEYS[1]).ok == 'stream' then
  redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
end
return 1
