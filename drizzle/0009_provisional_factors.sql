ALTER TABLE `totp_factors` ADD `is_provisional` integer DEFAULT false NOT NULL;--> statement-breakpoint
UPDATE `totp_factors` SET `is_provisional` = 1
WHERE `user_id` IN (SELECT `id` FROM `users` WHERE `is_provisional` = 1);
