ALTER TABLE `conversations` ADD `state` text DEFAULT 'open' NOT NULL;--> statement-breakpoint
ALTER TABLE `conversations` ADD `data` text;--> statement-breakpoint
ALTER TABLE `conversations` ADD CONSTRAINT `conversations_state` CHECK(state IN ('open', 'read_only'));--> statement-breakpoint
-- In place: rebuilding the largest table would take minutes.
ALTER TABLE `messages` ALTER COLUMN `sender_id` DROP NOT NULL;--> statement-breakpoint
ALTER TABLE `messages` ADD `is_silent` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `messages` ADD `data` text;--> statement-breakpoint
ALTER TABLE `messages` DROP CONSTRAINT `messages_type`;--> statement-breakpoint
ALTER TABLE `messages` ADD CONSTRAINT `messages_type` CHECK(type IN ('text', 'file', 'notice'));--> statement-breakpoint
ALTER TABLE `messages` ADD CONSTRAINT `messages_notice` CHECK((type = 'notice') = (sender_id IS NULL));--> statement-breakpoint
ALTER TABLE `messages` ADD CONSTRAINT `messages_silent` CHECK(is_silent = 0 OR type = 'notice');
