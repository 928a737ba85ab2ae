ALTER TABLE `users` ADD `is_provisional` integer DEFAULT false NOT NULL;--> statement-breakpoint
UPDATE `users` SET `is_provisional` = 1
WHERE `email_verified` = 0 AND `password_hash` <> 'none' AND NOT EXISTS (
	SELECT 1 FROM `audit_log` WHERE `target_id` = `users`.`id` AND `action` = 'email_verified'
);
--> statement-breakpoint
CREATE TRIGGER `users_proved` AFTER UPDATE OF `email_verified` ON `users`
WHEN new.`email_verified` AND new.`is_provisional` BEGIN
	UPDATE `users` SET `is_provisional` = 0 WHERE `id` = new.`id`;
END;
