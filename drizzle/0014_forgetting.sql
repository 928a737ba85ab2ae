ALTER TABLE `conversations` ADD `first_seq` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
CREATE INDEX `messages_broadcast` ON `messages` (`broadcast_id`) WHERE broadcast_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `reports_open_message` ON `reports` (`message_id`) WHERE status = 'open' AND message_id IS NOT NULL;