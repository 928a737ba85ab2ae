CREATE TABLE `one_time_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`purpose` text NOT NULL,
	`user_id` text,
	`email` text,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "one_time_tokens_purpose" CHECK(purpose IN ('verify_email', 'reset_password', 'set_up'))
);
--> statement-breakpoint
CREATE INDEX `one_time_tokens_user` ON `one_time_tokens` (`user_id`,`purpose`);--> statement-breakpoint
CREATE INDEX `one_time_tokens_expiry` ON `one_time_tokens` (`expires_at`);--> statement-breakpoint
ALTER TABLE `users` ADD `deleted_at` integer;--> statement-breakpoint
CREATE INDEX `audit_log_target` ON `audit_log` (`target_id`,`action`,`at`);--> statement-breakpoint
CREATE INDEX `outbox_dead` ON `outbox` (`dead_at`) WHERE dead_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sessions_last_used` ON `sessions` (`last_used_at`);--> statement-breakpoint
CREATE TRIGGER `audit_log_keeps_rows` BEFORE DELETE ON `audit_log` BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_log_keeps_words` BEFORE UPDATE ON `audit_log` BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
