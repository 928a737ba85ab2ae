ALTER TABLE `files` ADD `picture` text;--> statement-breakpoint
ALTER TABLE `files` ADD `orientation` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE `messages` ADD `picture` text;