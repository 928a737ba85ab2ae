ALTER TABLE `ticket_notes` ADD `edited_at` integer;--> statement-breakpoint
ALTER TABLE `ticket_notes` ADD `attachments` text;
--> statement-breakpoint
-- A ticket as the desk's search sees it. Bounded, as each message and each note writes it again: the opening message and the
-- newest hundred, 6,000 characters, and 3,000 of the newest notes.
CREATE VIEW `ticket_texts` AS SELECT `n`, `id`, `subject`,
	concat_ws(
		char(10),
		(SELECT substr(group_concat(`body`, char(10)), 1, 6000) FROM (
			SELECT `body` FROM `ticket_messages`
			WHERE `ticket_id` = `tickets`.`id` AND (`seq` = 1 OR `seq` > `tickets`.`message_count` - 100)
			ORDER BY `seq` = 1 DESC, `seq` DESC
		)),
		(SELECT substr(group_concat(`body`, char(10)), 1, 3000) FROM (
			SELECT `body` FROM `ticket_notes` WHERE `ticket_id` = `tickets`.`id` ORDER BY `id` DESC LIMIT 100
		))
	) AS `body`,
	'user' || `user_id` AS `facets`
FROM `tickets`;
--> statement-breakpoint
DROP TRIGGER `ticket_search_update`;
--> statement-breakpoint
CREATE TRIGGER `ticket_search_update` AFTER UPDATE ON `tickets`
WHEN old.`message_count` <> new.`message_count` BEGIN
	INSERT OR REPLACE INTO `ticket_search` (rowid, id, subject, body, facets)
	SELECT `n`, `id`, `subject`, `body`, `facets` FROM `ticket_texts` WHERE `n` = new.`n`;
END;
--> statement-breakpoint
INSERT OR REPLACE INTO `ticket_search` (rowid, id, subject, body, facets)
SELECT `n`, `id`, `subject`, `body`, `facets` FROM `ticket_texts`
WHERE `id` IN (SELECT `ticket_id` FROM `ticket_notes`);
