-- Prices that fall at least twice and then rise again.
SELECT symbol, began, top, bottom, n
FROM ticks MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES FIRST(ts) AS began, FIRST(price) AS top, LAST(DOWN.price) AS bottom, COUNT(DOWN.*) AS n
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (STRT DOWN{2,} UP+)
  DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)
)
ORDER BY symbol, began
