CREATE TABLE `audiences` (
	`host_id` text PRIMARY KEY NOT NULL,
	`follower_count` integer NOT NULL,
	FOREIGN KEY (`host_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `broadcasts` (
	`id` text PRIMARY KEY NOT NULL,
	`sender_id` text NOT NULL,
	`body` text NOT NULL,
	`client_id` text,
	`recipients_count` integer NOT NULL,
	`delivered_count` integer DEFAULT 0 NOT NULL,
	`last_follower_id` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`sender_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `broadcasts_client_id` ON `broadcasts` (`sender_id`,`client_id`) WHERE client_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `calls` (
	`id` text PRIMARY KEY NOT NULL,
	`host_id` text NOT NULL,
	`guest_id` text NOT NULL,
	`state` text NOT NULL,
	`active_at` integer,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`host_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`guest_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "calls_state" CHECK(state IN ('ringing', 'active', 'ended', 'missed'))
);
--> statement-breakpoint
CREATE INDEX `calls_active` ON `calls` (`host_id`,`guest_id`,`active_at`) WHERE state = 'active';--> statement-breakpoint
CREATE INDEX `calls_updated` ON `calls` (`updated_at`);--> statement-breakpoint
CREATE TABLE `follows` (
	`host_id` text NOT NULL,
	`follower_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`host_id`, `follower_id`),
	FOREIGN KEY (`host_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`follower_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "follows_two_users" CHECK(host_id <> follower_id)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `follows_follower` ON `follows` (`follower_id`);--> statement-breakpoint
CREATE TABLE `service_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`scopes` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `service_keys_hash_unique` ON `service_keys` (`hash`);--> statement-breakpoint
-- A column that must not be null and has no default: the table is made anew.
CREATE TABLE `messages_new` (
	`conversation_id` text NOT NULL,
	`seq` integer NOT NULL,
	`id` text NOT NULL,
	`sender_id` text NOT NULL,
	`recipient_id` text NOT NULL,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`file_url` text,
	`file_name` text,
	`file_size` integer,
	`file_type` text,
	`client_id` text,
	`broadcast_id` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`conversation_id`, `seq`),
	FOREIGN KEY (`broadcast_id`) REFERENCES `broadcasts`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`sender_id`,`conversation_id`) REFERENCES `participants`(`user_id`,`conversation_id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "messages_type" CHECK(type IN ('text', 'file')),
	CONSTRAINT "messages_file" CHECK((type = 'file') = (file_url IS NOT NULL))
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `messages_new`
SELECT m.`conversation_id`, m.`seq`, m.`id`, m.`sender_id`,
	CASE m.`sender_id` WHEN c.`user_a` THEN c.`user_b` ELSE c.`user_a` END,
	m.`type`, m.`body`, m.`file_url`, m.`file_name`, m.`file_size`, m.`file_type`, m.`client_id`, NULL, m.`created_at`
FROM `messages` m JOIN `conversations` c ON c.`id` = m.`conversation_id`;--> statement-breakpoint
DROP TABLE `messages`;--> statement-breakpoint
ALTER TABLE `messages_new` RENAME TO `messages`;--> statement-breakpoint
CREATE UNIQUE INDEX `messages_client_id` ON `messages` (`sender_id`,`client_id`) WHERE client_id IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `messages_id_unique` ON `messages` (`id`);--> statement-breakpoint
CREATE INDEX `messages_received` ON `messages` (`recipient_id`,`id`);--> statement-breakpoint
CREATE INDEX `messages_sent` ON `messages` (`sender_id`,`id`) WHERE broadcast_id IS NULL;
