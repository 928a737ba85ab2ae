CREATE TABLE `announcements` (
	`id` text PRIMARY KEY NOT NULL,
	`audience` text NOT NULL,
	`role` text,
	`user_ids` text,
	`title` text NOT NULL,
	`body` text NOT NULL,
	`data` text NOT NULL,
	`client_id` text,
	`sender_id` text NOT NULL,
	`recipients_count` integer NOT NULL,
	`delivered_count` integer DEFAULT 0 NOT NULL,
	`last_user_id` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`sender_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "announcements_audience" CHECK(audience IN ('all', 'role', 'users'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `announcements_client_id` ON `announcements` (`sender_id`,`client_id`) WHERE client_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `notification_counts` (
	`user_id` text PRIMARY KEY NOT NULL,
	`total_count` integer NOT NULL,
	`unread_count` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "notification_counts_unread" CHECK(unread_count BETWEEN 0 AND total_count)
);
--> statement-breakpoint
CREATE TABLE `notification_preferences` (
	`user_id` text NOT NULL,
	`type` text NOT NULL,
	`in_app` integer NOT NULL,
	`push` integer NOT NULL,
	`email` integer NOT NULL,
	PRIMARY KEY(`user_id`, `type`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `notifications` (
	`user_id` text NOT NULL,
	`id` text NOT NULL,
	`type` text NOT NULL,
	`title` text NOT NULL,
	`body` text NOT NULL,
	`data` text NOT NULL,
	`dedupe_key` text,
	`read_at` integer,
	`mailed_at` integer,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "notifications_type" CHECK(type IN ('call_incoming', 'call_missed', 'payment_captured', 'payout_completed', 'payout_failed', 'follow_new', 'support_reply', 'broadcast'))
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `notifications_unread` ON `notifications` (`user_id`,`id`) WHERE read_at IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_dedupe` ON `notifications` (`user_id`,`dedupe_key`) WHERE dedupe_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX `notifications_read_age` ON `notifications` (`created_at`) WHERE read_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `notifications_age` ON `notifications` (`created_at`);--> statement-breakpoint
CREATE TABLE `push_tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`session_id` text NOT NULL,
	`token` text NOT NULL,
	`token_hash` text NOT NULL,
	`platform` text NOT NULL,
	`created_at` integer NOT NULL,
	`registered_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "push_tokens_platform" CHECK(platform IN ('ios', 'android', 'web'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `push_tokens_token_hash_unique` ON `push_tokens` (`token_hash`);--> statement-breakpoint
CREATE INDEX `push_tokens_user` ON `push_tokens` (`user_id`,`registered_at`);--> statement-breakpoint
CREATE INDEX `push_tokens_session` ON `push_tokens` (`session_id`);--> statement-breakpoint
CREATE TABLE `vapid_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`private_key` text NOT NULL,
	`public_key` text NOT NULL,
	CONSTRAINT "vapid_keys_one" CHECK(id = 1)
);
--> statement-breakpoint
DROP INDEX `outbox_due`;--> statement-breakpoint
CREATE INDEX `outbox_due` ON `outbox` (`kind`,`run_at`,`id`) WHERE dead_at IS NULL;--> statement-breakpoint
CREATE INDEX `users_present` ON `users` (`id`) WHERE deleted_at IS NULL;--> statement-breakpoint
CREATE INDEX `users_present_role` ON `users` (`role`,`id`) WHERE deleted_at IS NULL;--> statement-breakpoint
-- The totals are true after every statement, whatever it was.
CREATE TRIGGER `notifications_added` AFTER INSERT ON `notifications` BEGIN
	INSERT INTO `notification_counts` VALUES (new.`user_id`, 1, new.`read_at` IS NULL)
	ON CONFLICT (`user_id`) DO UPDATE SET
		`total_count` = `total_count` + 1,
		`unread_count` = `unread_count` + (new.`read_at` IS NULL);
END;--> statement-breakpoint
CREATE TRIGGER `notifications_read` AFTER UPDATE OF `read_at` ON `notifications`
WHEN (old.`read_at` IS NULL) <> (new.`read_at` IS NULL) BEGIN
	UPDATE `notification_counts`
	SET `unread_count` = `unread_count` + (new.`read_at` IS NULL) - (old.`read_at` IS NULL)
	WHERE `user_id` = new.`user_id`;
END;--> statement-breakpoint
CREATE TRIGGER `notifications_removed` AFTER DELETE ON `notifications` BEGIN
	UPDATE `notification_counts`
	SET `total_count` = `total_count` - 1, `unread_count` = `unread_count` - (old.`read_at` IS NULL)
	WHERE `user_id` = old.`user_id`;
END;
