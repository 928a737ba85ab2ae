CREATE TABLE `timeline_mark` (
	`id` integer PRIMARY KEY NOT NULL,
	`message_id` text NOT NULL,
	CONSTRAINT "timeline_mark_one" CHECK(id = 1)
);
--> statement-breakpoint
CREATE TABLE `timelines` (
	`user_id` text NOT NULL,
	`message_id` text NOT NULL,
	`conversation_id` text NOT NULL,
	`seq` integer NOT NULL,
	PRIMARY KEY(`user_id`, `message_id`)
) WITHOUT ROWID;
--> statement-breakpoint
DROP INDEX `messages_id_unique`;--> statement-breakpoint
DROP INDEX `messages_received`;--> statement-breakpoint
DROP INDEX `messages_sent`;--> statement-breakpoint
CREATE UNIQUE INDEX `messages_by_id` ON `messages` (`id`,`recipient_id`,`sender_id`,`broadcast_id`);--> statement-breakpoint
INSERT INTO `timelines`
SELECT `recipient_id`, `id`, `conversation_id`, `seq` FROM `messages`
UNION ALL
SELECT `sender_id`, `id`, `conversation_id`, `seq` FROM `messages` WHERE `broadcast_id` IS NULL
ORDER BY 1, 2;--> statement-breakpoint
INSERT INTO `timeline_mark` VALUES (1, (SELECT coalesce(max(`id`), '') FROM `messages`));
