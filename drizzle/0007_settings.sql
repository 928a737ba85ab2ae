CREATE TABLE `settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
ALTER TABLE `inboxes` ADD `mailed_through` text;--> statement-breakpoint
ALTER TABLE `inboxes` ADD `is_mailed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `quiet_hours` text;