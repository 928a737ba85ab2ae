-- A change that merges segments writes 64 of these pages or several times as many. Small ones keep that to a few milliseconds.
INSERT INTO `ticket_search` (`ticket_search`, `rank`) VALUES ('pgsz', 300);
