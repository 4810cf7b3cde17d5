"""Moving what one cluster holds to another one: topics with their records at the same offsets, and group positions.

`preflight` looks at both sides and says what would be moved, what would not, and what stands in the way;
`moving.execute` does it. Nothing at the source is changed. How records come to lie at the offsets that they had:

- Kafka gives every appended record the next offset, so a partition is copied in order from where the target ends. The
  target's own end offset is therefore all there is to know about how far a copy got: a move that was killed goes on
  there.
- Before the first record: plain records fill the offsets, and DeleteRecords then puts the log start behind them.
- Offsets between records that hold nothing (compacted away, transaction markers, aborted records) are taken by
  transaction markers without a transaction (`gaps.py`): control records, which take one offset each and which no
  consumer ever sees.

While a topic is copied its retention, compaction and limits are off at the target (`configs.py`), or the target would
begin to delete old records while they arrive; the topic's own configs are set when its records have been verified.
"""
