DROP INDEX `users_access_changed_at`;--> statement-breakpoint
ALTER TABLE `users` DROP COLUMN `access_changed_at`;