CREATE TABLE `blocks` (
	`user_id` text NOT NULL,
	`other_user_id` text NOT NULL,
	`id` text,
	`blocked_at` integer,
	PRIMARY KEY(`user_id`, `other_user_id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`other_user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "blocks_two_users" CHECK(user_id <> other_user_id)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `blocks_own` ON `blocks` (`user_id`,`id`) WHERE id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `file_uses` (
	`used_by` text NOT NULL,
	`file_id` text NOT NULL,
	PRIMARY KEY(`used_by`, `file_id`),
	FOREIGN KEY (`file_id`) REFERENCES `files`(`id`) ON UPDATE no action ON DELETE cascade
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `file_uses_file` ON `file_uses` (`file_id`);--> statement-breakpoint
CREATE TABLE `files` (
	`id` text PRIMARY KEY NOT NULL,
	`owner_id` text NOT NULL,
	`name` text NOT NULL,
	`size` integer NOT NULL,
	`type` text NOT NULL,
	`is_inline` integer NOT NULL,
	`stored_at` integer,
	`unused_since` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "files_is_inline" CHECK(is_inline IN (0, 1))
);
--> statement-breakpoint
CREATE INDEX `files_owner` ON `files` (`owner_id`,`id`,`size`);--> statement-breakpoint
CREATE INDEX `files_unused` ON `files` (`unused_since`) WHERE unused_since IS NOT NULL;--> statement-breakpoint
CREATE TABLE `recovery_codes` (
	`user_id` text NOT NULL,
	`hash` text NOT NULL,
	PRIMARY KEY(`user_id`, `hash`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `refresh_answers` (
	`request_hash` text PRIMARY KEY NOT NULL,
	`session_id` text NOT NULL,
	`sealed` text NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `refresh_answers_session` ON `refresh_answers` (`session_id`);--> statement-breakpoint
CREATE INDEX `refresh_answers_expiry` ON `refresh_answers` (`expires_at`);--> statement-breakpoint
CREATE TABLE `reports` (
	`id` text PRIMARY KEY NOT NULL,
	`reporter_id` text NOT NULL,
	`reported_id` text NOT NULL,
	`message_id` text,
	`target_id` text NOT NULL,
	`reason` text NOT NULL,
	`body` text,
	`status` text NOT NULL,
	`note` text,
	`excerpt` text,
	`resolved_by_id` text,
	`resolved_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`reporter_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`reported_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`resolved_by_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "reports_reason" CHECK(reason IN ('spam', 'harassment', 'fraud', 'sexual', 'other')),
	CONSTRAINT "reports_status" CHECK(status IN ('open', 'resolved')),
	CONSTRAINT "reports_target" CHECK(target_id = coalesce(message_id, reported_id)),
	CONSTRAINT "reports_resolved" CHECK((status = 'resolved') = (resolved_at IS NOT NULL)),
	CONSTRAINT "reports_excerpt" CHECK(status = 'open' OR excerpt IS NULL)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `reports_open_target` ON `reports` (`reporter_id`,`target_id`) WHERE status = 'open';--> statement-breakpoint
CREATE INDEX `reports_status_id` ON `reports` (`status`,`id`);--> statement-breakpoint
CREATE INDEX `reports_reporter` ON `reports` (`reporter_id`,`id`);--> statement-breakpoint
CREATE INDEX `reports_resolved_at` ON `reports` (`resolved_at`) WHERE resolved_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `totp_factors` (
	`user_id` text PRIMARY KEY NOT NULL,
	`secret` text NOT NULL,
	`confirmed_at` integer,
	`last_step` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `totp_factors_unconfirmed` ON `totp_factors` (`created_at`) WHERE confirmed_at IS NULL;--> statement-breakpoint
CREATE TABLE `webhook_deliveries` (
	`webhook_id` text NOT NULL,
	`id` text NOT NULL,
	`event` text NOT NULL,
	`status` text NOT NULL,
	`attempts` integer NOT NULL,
	`response_status` integer,
	`response` text,
	`created_at` integer NOT NULL,
	`attempted_at` integer NOT NULL,
	PRIMARY KEY(`webhook_id`, `id`),
	FOREIGN KEY (`webhook_id`) REFERENCES `webhooks`(`id`) ON UPDATE no action ON DELETE cascade
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_attempted` ON `webhook_deliveries` (`attempted_at`);--> statement-breakpoint
CREATE TABLE `webhooks` (
	`id` text PRIMARY KEY NOT NULL,
	`url` text NOT NULL,
	`events` text NOT NULL,
	`description` text,
	`secret` text NOT NULL,
	`former_secret` text,
	`former_secret_until` integer,
	`failing_since` integer,
	`disabled_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `__new_one_time_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`purpose` text NOT NULL,
	`user_id` text,
	`email` text,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "one_time_tokens_purpose" CHECK(purpose IN ('verify_email', 'reset_password', 'set_up', 'change_email', 'undo_email'))
);
--> statement-breakpoint
INSERT INTO `__new_one_time_tokens`("hash", "purpose", "user_id", "email", "expires_at") SELECT "hash", "purpose", "user_id", "email", "expires_at" FROM `one_time_tokens`;--> statement-breakpoint
DROP TABLE `one_time_tokens`;--> statement-breakpoint
ALTER TABLE `__new_one_time_tokens` RENAME TO `one_time_tokens`;--> statement-breakpoint
CREATE INDEX `one_time_tokens_user` ON `one_time_tokens` (`user_id`,`purpose`);--> statement-breakpoint
CREATE INDEX `one_time_tokens_reserved` ON `one_time_tokens` (`email`) WHERE purpose = 'undo_email';--> statement-breakpoint
CREATE INDEX `one_time_tokens_expiry` ON `one_time_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `__new_sent_mails` (
	`address_hash` text NOT NULL,
	`kind` text NOT NULL,
	`at` integer NOT NULL,
	CONSTRAINT "sent_mails_kind" CHECK(kind IN ('verify_email', 'reset_password', 'password_changed', 'change_email'))
);
--> statement-breakpoint
INSERT INTO `__new_sent_mails`("address_hash", "kind", "at") SELECT "address_hash", "kind", "at" FROM `sent_mails`;--> statement-breakpoint
DROP TABLE `sent_mails`;--> statement-breakpoint
ALTER TABLE `__new_sent_mails` RENAME TO `sent_mails`;--> statement-breakpoint
CREATE INDEX `sent_mails_address` ON `sent_mails` (`address_hash`,`kind`,`at`);--> statement-breakpoint
CREATE INDEX `sent_mails_at` ON `sent_mails` (`at`);--> statement-breakpoint
DROP INDEX `outbox_due`;--> statement-breakpoint
ALTER TABLE `outbox` ADD `lane` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `outbox_due` ON `outbox` (`kind`,`lane`,`run_at`,`id`) WHERE dead_at IS NULL;--> statement-breakpoint
ALTER TABLE `messages` ADD `deleted_at` integer;--> statement-breakpoint
ALTER TABLE `participants` ADD `muted_until` integer;--> statement-breakpoint
ALTER TABLE `ticket_messages` ADD `attachments` text;--> statement-breakpoint
ALTER TABLE `users` ADD `external_id` text;--> statement-breakpoint
CREATE UNIQUE INDEX `users_external_id` ON `users` (`external_id`) WHERE external_id IS NOT NULL;--> statement-breakpoint
DROP INDEX `users_present_name`;--> statement-breakpoint
DROP INDEX `users_present`;--> statement-breakpoint
CREATE INDEX `users_present` ON `users` (`id`,`disabled_at`) WHERE deleted_at IS NULL;--> statement-breakpoint
DROP INDEX `users_present_role`;--> statement-breakpoint
CREATE INDEX `users_present_role` ON `users` (`role`,`id`,`disabled_at`) WHERE deleted_at IS NULL;--> statement-breakpoint
-- People are also found by what they are, and by how a name, its second word or an address begins where that is shorter than
-- the parts that the index knows. Each is a word of three characters, so that one walk along the index finds all that is asked.
ALTER TABLE `users` ADD `facets` text GENERATED ALWAYS AS (
	'r:' || substr(`role`, 1, 1) || ' d:' || (`disabled_at` IS NOT NULL) || ' v:' || `email_verified`
	|| ' ^' || substr(`display_name`, 1, 2) || ' ^^' || substr(`display_name`, 1, 1)
	|| iif(instr(`display_name`, ' ') = 0, '', ' ^' || substr(`display_name`, instr(`display_name`, ' ') + 1, 2)
		|| ' ^^' || substr(`display_name`, instr(`display_name`, ' ') + 1, 1))
	|| ' ^' || substr(`email`, 1, 2) || ' ^^' || substr(`email`, 1, 1)
) VIRTUAL;--> statement-breakpoint
DROP TRIGGER `user_search_insert`;--> statement-breakpoint
DROP TRIGGER `user_search_update`;--> statement-breakpoint
DROP TABLE `user_search`;--> statement-breakpoint
CREATE VIRTUAL TABLE `user_search` USING fts5(
	display_name, email, facets, content='users', content_rowid='n', tokenize="trigram remove_diacritics 1"
);
--> statement-breakpoint
INSERT INTO `user_search` (`user_search`, `rank`) VALUES ('secure-delete', 1);
--> statement-breakpoint
INSERT INTO `user_search` (rowid, display_name, email, facets)
SELECT `n`, `display_name`, `email`, `facets` FROM `users` WHERE `deleted_at` IS NULL;
--> statement-breakpoint
CREATE TRIGGER `user_search_insert` AFTER INSERT ON `users` BEGIN
	INSERT INTO `user_search` (rowid, display_name, email, facets)
	VALUES (new.`n`, new.`display_name`, new.`email`, new.`facets`);
END;--> statement-breakpoint
CREATE TRIGGER `user_search_update` AFTER UPDATE OF `display_name`, `email`, `role`, `disabled_at`, `email_verified` ON `users`
WHEN old.`deleted_at` IS NULL
AND (old.`display_name` <> new.`display_name` OR old.`email` <> new.`email` OR old.`facets` <> new.`facets`) BEGIN
	INSERT INTO `user_search` (`user_search`, rowid, display_name, email, facets)
	VALUES ('delete', old.`n`, old.`display_name`, old.`email`, old.`facets`);
	INSERT INTO `user_search` (rowid, display_name, email, facets)
	SELECT new.`n`, new.`display_name`, new.`email`, new.`facets` WHERE new.`deleted_at` IS NULL;
END;
--> statement-breakpoint
-- The tickets that wait are counted and found, too. Who works on a ticket and how far that is are asked for together.
DROP INDEX `tickets_queue_assignee`;--> statement-breakpoint
CREATE INDEX `tickets_queue_assignee` ON `tickets` (`assignee_id`,`status`,`queue_key`,`n`,`priority`,`category`);--> statement-breakpoint
DROP TRIGGER `ticket_counts_insert`;--> statement-breakpoint
DROP TRIGGER `ticket_counts_update`;--> statement-breakpoint
ALTER TABLE `ticket_counts` ADD `waiting_count` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
INSERT INTO `ticket_counts`
SELECT coalesce(`assignee_id`, ''), `status`, `priority`, `category`, 0, count(*) FROM `tickets`
WHERE `waiting_since` IS NOT NULL GROUP BY 1, 2, 3, 4
ON CONFLICT DO UPDATE SET `waiting_count` = excluded.`waiting_count`;
--> statement-breakpoint
CREATE TRIGGER `ticket_counts_insert` AFTER INSERT ON `tickets`
BEGIN
	INSERT INTO `ticket_counts` VALUES (
		coalesce(new.`assignee_id`, ''), new.`status`, new.`priority`, new.`category`, 1, new.`waiting_since` IS NOT NULL
	) ON CONFLICT DO UPDATE SET
		`ticket_count` = `ticket_count` + 1, `waiting_count` = `waiting_count` + excluded.`waiting_count`;
END;
--> statement-breakpoint
CREATE TRIGGER `ticket_counts_update` AFTER UPDATE ON `tickets`
WHEN old.`status` <> new.`status` OR old.`priority` <> new.`priority` OR old.`category` <> new.`category`
	OR old.`assignee_id` IS NOT new.`assignee_id` OR (old.`waiting_since` IS NULL) <> (new.`waiting_since` IS NULL)
BEGIN
	UPDATE `ticket_counts` SET
		`ticket_count` = `ticket_count` - 1, `waiting_count` = `waiting_count` - (old.`waiting_since` IS NOT NULL)
	WHERE `assignee_id` = coalesce(old.`assignee_id`, '') AND `status` = old.`status`
		AND `priority` = old.`priority` AND `category` = old.`category`;
	INSERT INTO `ticket_counts` VALUES (
		coalesce(new.`assignee_id`, ''), new.`status`, new.`priority`, new.`category`, 1, new.`waiting_since` IS NOT NULL
	) ON CONFLICT DO UPDATE SET
		`ticket_count` = `ticket_count` + 1, `waiting_count` = `waiting_count` + excluded.`waiting_count`;
END;
--> statement-breakpoint
DROP TRIGGER `ticket_search_update`;--> statement-breakpoint
-- Bounded, as each change of the ticket writes it again: the opening message and the newest hundred, 6,000 characters.
CREATE TRIGGER `ticket_search_update` AFTER UPDATE ON `tickets`
WHEN old.`message_count` <> new.`message_count` OR old.`status` <> new.`status` OR old.`priority` <> new.`priority`
	OR old.`category` <> new.`category` OR old.`assignee_id` IS NOT new.`assignee_id`
	OR (old.`waiting_since` IS NULL) <> (new.`waiting_since` IS NULL)
BEGIN
	INSERT OR REPLACE INTO `ticket_search` (rowid, id, subject, body, facets) VALUES (
		new.`n`, new.`id`, new.`subject`,
		(SELECT substr(group_concat(`body`, char(10)), 1, 6000) FROM (
			SELECT `body` FROM `ticket_messages`
			WHERE `ticket_id` = new.`id` AND (`seq` = 1 OR `seq` > new.`message_count` - 100)
			ORDER BY `seq` = 1 DESC, `seq` DESC
		)),
		'status' || replace(new.`status`, '_', '') || ' priority' || new.`priority` || ' category' || new.`category`
			|| ' assignee' || coalesce(new.`assignee_id`, 'none') || ' user' || new.`user_id`
			|| iif(new.`waiting_since` IS NULL, '', ' waiting')
	);
END;
--> statement-breakpoint
INSERT OR REPLACE INTO `ticket_search` (rowid, id, subject, body, facets)
SELECT `n`, `id`, `subject`,
	(SELECT substr(group_concat(`body`, char(10)), 1, 6000) FROM (
		SELECT `body` FROM `ticket_messages`
		WHERE `ticket_id` = `tickets`.`id` AND (`seq` = 1 OR `seq` > `tickets`.`message_count` - 100)
		ORDER BY `seq` = 1 DESC, `seq` DESC
	)),
	'status' || replace(`status`, '_', '') || ' priority' || `priority` || ' category' || `category`
		|| ' assignee' || coalesce(`assignee_id`, 'none') || ' user' || `user_id` || ' waiting'
FROM `tickets` WHERE `waiting_since` IS NOT NULL;
