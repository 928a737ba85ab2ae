ALTER TABLE `blocks` ADD `other_name` text DEFAULT '' NOT NULL;--> statement-breakpoint
UPDATE `blocks` SET `other_name` = (SELECT `display_name` FROM `users` WHERE `id` = `other_user_id`);--> statement-breakpoint
DROP TABLE `refresh_answers`;--> statement-breakpoint
ALTER TABLE `refresh_tokens` ADD `key_hash` text;--> statement-breakpoint
CREATE TABLE `text_usage` (
	`user_id` text PRIMARY KEY NOT NULL,
	`day` integer NOT NULL,
	`bytes` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `text_usage_day` ON `text_usage` (`day`);--> statement-breakpoint
DROP INDEX `users_access_changed_at`;--> statement-breakpoint
ALTER TABLE `users` DROP COLUMN `access_changed_at`;--> statement-breakpoint
CREATE TABLE `removed_messages` (
	`message_id` text PRIMARY KEY NOT NULL,
	`said` text NOT NULL,
	`removed_at` integer NOT NULL,
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `removed_messages_removed_at` ON `removed_messages` (`removed_at`);--> statement-breakpoint
ALTER TABLE `files` ADD `removed_at` integer;--> statement-breakpoint
DELETE FROM `file_uses` WHERE EXISTS (SELECT 1 FROM `files` WHERE `files`.`id` = `file_id` AND `owner_id` <> coalesce(
	(SELECT `sender_id` FROM `messages` WHERE `messages`.`id` = `used_by`),
	(SELECT `users`.`id` FROM `users` WHERE `users`.`id` = `used_by`),
	`owner_id`));--> statement-breakpoint
UPDATE `files` SET `unused_since` = unixepoch() * 1000
	WHERE `unused_since` IS NULL AND NOT EXISTS (SELECT 1 FROM `file_uses` WHERE `file_id` = `files`.`id`);--> statement-breakpoint
ALTER TABLE `users` ADD `is_provisional` integer DEFAULT false NOT NULL;--> statement-breakpoint
UPDATE `users` SET `is_provisional` = 1
WHERE `email_verified` = 0 AND `password_hash` <> 'none' AND NOT EXISTS (
	SELECT 1 FROM `audit_log` WHERE `target_id` = `users`.`id` AND `action` = 'email_verified'
);
--> statement-breakpoint
CREATE TRIGGER `users_proved` AFTER UPDATE OF `email_verified` ON `users`
WHEN new.`email_verified` AND new.`is_provisional` BEGIN
	UPDATE `users` SET `is_provisional` = 0 WHERE `id` = new.`id`;
END;--> statement-breakpoint
ALTER TABLE `sessions` ADD `confirmed_at` integer;--> statement-breakpoint
ALTER TABLE `totp_factors` ADD `is_provisional` integer DEFAULT false NOT NULL;--> statement-breakpoint
UPDATE `totp_factors` SET `is_provisional` = 1
WHERE `user_id` IN (SELECT `id` FROM `users` WHERE `is_provisional` = 1);--> statement-breakpoint
ALTER TABLE `outbox` RENAME COLUMN `lane` TO `receiver`;--> statement-breakpoint
ALTER TABLE `outbox` DROP COLUMN `leased_until`;--> statement-breakpoint
ALTER TABLE `push_tokens` ADD `service` text DEFAULT 'fcm' NOT NULL;--> statement-breakpoint
UPDATE `push_tokens` SET `service` = (
  SELECT substr(`rest`, 1, instr(`rest` || '/', '/') - 1)
  FROM (SELECT substr(CASE WHEN json_valid(`token`) THEN `token` ->> '$.endpoint' END, 9) AS `rest`)
) WHERE `platform` = 'web' AND CASE WHEN json_valid(`token`) THEN `token` ->> '$.endpoint' END LIKE 'https://%';
--> statement-breakpoint
DROP TRIGGER `ticket_counts_insert`;--> statement-breakpoint
DROP TRIGGER `ticket_counts_update`;--> statement-breakpoint
DROP TABLE `ticket_counts`;--> statement-breakpoint
DROP INDEX `tickets_queue`;--> statement-breakpoint
DROP INDEX `tickets_queue_assignee`;--> statement-breakpoint
CREATE INDEX `tickets_queue` ON `tickets` (`queue_key`,`n`,`status`,`priority`,`category`,`assignee_id`);--> statement-breakpoint
CREATE INDEX `tickets_queue_assignee` ON `tickets` (`assignee_id`,`queue_key`,`n`,`status`,`priority`,`category`);--> statement-breakpoint
-- Each commit that changes the index adds a segment to it, and the index merges eight of a size by itself. Small pages keep
-- each merge short.
INSERT INTO `ticket_search` (`ticket_search`, `rank`) VALUES ('automerge', 8), ('usermerge', 4), ('crisismerge', 16), ('pgsz', 1000);
--> statement-breakpoint
DROP TRIGGER `ticket_search_update`;--> statement-breakpoint
-- Bounded, as each message writes it again: the opening message and the newest hundred, 6,000 characters. `facets` names
-- the owner; older rows also hold the values of filters, which nothing reads any more.
CREATE TRIGGER `ticket_search_update` AFTER UPDATE ON `tickets`
WHEN old.`message_count` <> new.`message_count` BEGIN
	INSERT OR REPLACE INTO `ticket_search` (rowid, id, subject, body, facets) VALUES (
		new.`n`, new.`id`, new.`subject`,
		(SELECT substr(group_concat(`body`, char(10)), 1, 6000) FROM (
			SELECT `body` FROM `ticket_messages`
			WHERE `ticket_id` = new.`id` AND (`seq` = 1 OR `seq` > new.`message_count` - 100)
			ORDER BY `seq` = 1 DESC, `seq` DESC
		)),
		'user' || new.`user_id`
	);
END;
--> statement-breakpoint
DROP INDEX `users_present`;--> statement-breakpoint
DROP INDEX `users_present_role`;--> statement-breakpoint
CREATE INDEX `users_present` ON `users` (`id`,`disabled_at`,`email_verified`) WHERE deleted_at IS NULL;--> statement-breakpoint
CREATE INDEX `users_present_role` ON `users` (`role`,`id`,`disabled_at`,`email_verified`) WHERE deleted_at IS NULL;
