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
	WHERE `unused_since` IS NULL AND NOT EXISTS (SELECT 1 FROM `file_uses` WHERE `file_id` = `files`.`id`);
