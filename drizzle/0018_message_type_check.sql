-- In place: rebuilding the largest table would take minutes. `IN` with three values builds a temporary index in each insert.
ALTER TABLE `messages` DROP CONSTRAINT `messages_type`;--> statement-breakpoint
ALTER TABLE `messages` ADD CONSTRAINT `messages_type` CHECK(type = 'text' OR type = 'file' OR type = 'notice');
