ALTER TABLE `sessions` ADD `is_by_platform` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `inboxes` ADD `archived_count` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `participants` ADD `is_archived` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `participants` ADD CONSTRAINT `participants_is_archived` CHECK(is_archived IN (0, 1));--> statement-breakpoint
DROP INDEX `participants_inbox`;--> statement-breakpoint
CREATE INDEX `participants_inbox` ON `participants` (`user_id`,`is_archived`,`last_activity_id`);--> statement-breakpoint
CREATE TRIGGER `participants_archived` AFTER UPDATE OF `is_archived` ON `participants`
WHEN new.`is_archived` <> old.`is_archived` BEGIN
	UPDATE `inboxes` SET
		`conversation_count` = `conversation_count` - new.`is_archived` + old.`is_archived`,
		`archived_count` = `archived_count` + new.`is_archived` - old.`is_archived`,
		`unread_count` = `unread_count` - iif(new.`is_archived`, 1, -1) * old.`unread_count`
	WHERE `user_id` = new.`user_id`;
END;
--> statement-breakpoint
CREATE INDEX `files_owner_created` ON `files` (`owner_id`,`created_at`,`id`) WHERE stored_at IS NOT NULL AND removed_at IS NULL;
