ALTER TABLE `blocks` ADD `other_name` text DEFAULT '' NOT NULL;--> statement-breakpoint
UPDATE `blocks` SET `other_name` = (SELECT `display_name` FROM `users` WHERE `id` = `other_user_id`);
