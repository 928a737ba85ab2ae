CREATE TABLE `text_usage` (
	`user_id` text PRIMARY KEY NOT NULL,
	`day` integer NOT NULL,
	`bytes` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `text_usage_day` ON `text_usage` (`day`);