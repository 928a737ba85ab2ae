DROP TABLE `refresh_answers`;--> statement-breakpoint
ALTER TABLE `refresh_tokens` ADD `key_hash` text;