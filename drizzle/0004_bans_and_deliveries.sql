CREATE TABLE `bans` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`value` text NOT NULL,
	`reason` text,
	`created_at` integer NOT NULL,
	`until` integer,
	CONSTRAINT "bans_kind" CHECK(kind IN ('mail_domain', 'address', 'network'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `bans_value` ON `bans` (`kind`,`value`);--> statement-breakpoint
CREATE TABLE `deliveries` (
	`user_id` text NOT NULL,
	`id` text NOT NULL,
	`channel` text NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`attempts` integer NOT NULL,
	`answer` text,
	`at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "deliveries_channel" CHECK(channel IN ('email', 'push')),
	CONSTRAINT "deliveries_state" CHECK(state IN ('sent', 'waiting', 'failed', 'bounced', 'skipped'))
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `deliveries_at` ON `deliveries` (`at`);--> statement-breakpoint
CREATE INDEX `deliveries_failing` ON `deliveries` (`id`) WHERE state IN ('waiting', 'failed');