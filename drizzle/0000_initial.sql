CREATE TABLE `announcements` (
	`id` text PRIMARY KEY NOT NULL,
	`audience` text NOT NULL,
	`role` text,
	`user_ids` text,
	`title` text NOT NULL,
	`body` text NOT NULL,
	`data` text NOT NULL,
	`client_id` text,
	`sender_id` text NOT NULL,
	`recipients_count` integer NOT NULL,
	`delivered_count` integer DEFAULT 0 NOT NULL,
	`last_user_id` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`sender_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "announcements_audience" CHECK(audience IN ('all', 'role', 'users'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `announcements_client_id` ON `announcements` (`sender_id`,`client_id`) WHERE client_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `audiences` (
	`host_id` text PRIMARY KEY NOT NULL,
	`follower_count` integer NOT NULL,
	FOREIGN KEY (`host_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `audit_log` (
	`id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`action` text NOT NULL,
	`actor_type` text NOT NULL,
	`actor_id` text,
	`target_type` text,
	`target_id` text,
	`ip` text,
	`details` text,
	CONSTRAINT "audit_log_actor_type" CHECK(actor_type IN ('user', 'service_key', 'command_line', 'system'))
);
--> statement-breakpoint
CREATE INDEX `audit_log_target` ON `audit_log` (`target_id`,`action`,`at`);--> statement-breakpoint
CREATE INDEX `audit_log_target_id` ON `audit_log` (`target_id`,`id`);--> statement-breakpoint
CREATE INDEX `audit_log_actor` ON `audit_log` (`actor_id`,`id`);--> statement-breakpoint
CREATE INDEX `audit_log_action` ON `audit_log` (`action`,`id`);--> statement-breakpoint
CREATE INDEX `audit_log_at` ON `audit_log` (`at`);--> statement-breakpoint
CREATE TABLE `broadcasts` (
	`id` text PRIMARY KEY NOT NULL,
	`sender_id` text NOT NULL,
	`body` text NOT NULL,
	`client_id` text,
	`recipients_count` integer NOT NULL,
	`delivered_count` integer DEFAULT 0 NOT NULL,
	`last_follower_id` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`sender_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `broadcasts_client_id` ON `broadcasts` (`sender_id`,`client_id`) WHERE client_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `calls` (
	`id` text PRIMARY KEY NOT NULL,
	`host_id` text NOT NULL,
	`guest_id` text NOT NULL,
	`state` text NOT NULL,
	`active_at` integer,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`host_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`guest_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "calls_state" CHECK(state IN ('ringing', 'active', 'ended', 'missed'))
);
--> statement-breakpoint
CREATE INDEX `calls_active` ON `calls` (`host_id`,`guest_id`,`active_at`) WHERE state = 'active';--> statement-breakpoint
CREATE INDEX `calls_updated` ON `calls` (`updated_at`);--> statement-breakpoint
CREATE TABLE `canned_replies` (
	`id` text PRIMARY KEY NOT NULL,
	`title` text NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `conversations` (
	`id` text PRIMARY KEY NOT NULL,
	`user_a` text NOT NULL,
	`user_b` text NOT NULL,
	`last_seq` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_a`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_b`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "conversations_two_users" CHECK(user_a < user_b)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `conversations_pair` ON `conversations` (`user_a`,`user_b`);--> statement-breakpoint
CREATE TABLE `follows` (
	`host_id` text NOT NULL,
	`follower_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`host_id`, `follower_id`),
	FOREIGN KEY (`host_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`follower_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "follows_two_users" CHECK(host_id <> follower_id)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `follows_follower` ON `follows` (`follower_id`);--> statement-breakpoint
CREATE TABLE `inboxes` (
	`user_id` text PRIMARY KEY NOT NULL,
	`conversation_count` integer NOT NULL,
	`unread_count` integer DEFAULT 0 NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`conversation_id` text NOT NULL,
	`seq` integer NOT NULL,
	`id` text NOT NULL,
	`sender_id` text NOT NULL,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`file_url` text,
	`file_name` text,
	`file_size` integer,
	`file_type` text,
	`client_id` text,
	`broadcast_id` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`conversation_id`, `seq`),
	FOREIGN KEY (`broadcast_id`) REFERENCES `broadcasts`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`sender_id`,`conversation_id`) REFERENCES `participants`(`user_id`,`conversation_id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "messages_type" CHECK(type IN ('text', 'file')),
	CONSTRAINT "messages_file" CHECK((type = 'file') = (file_url IS NOT NULL))
) WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `messages_id_unique` ON `messages` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `messages_client_id` ON `messages` (`sender_id`,`client_id`) WHERE client_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `notification_counts` (
	`user_id` text PRIMARY KEY NOT NULL,
	`total_count` integer NOT NULL,
	`unread_count` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "notification_counts_unread" CHECK(unread_count BETWEEN 0 AND total_count)
);
--> statement-breakpoint
CREATE TABLE `notification_preferences` (
	`user_id` text NOT NULL,
	`type` text NOT NULL,
	`in_app` integer NOT NULL,
	`push` integer NOT NULL,
	`email` integer NOT NULL,
	PRIMARY KEY(`user_id`, `type`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `notifications` (
	`user_id` text NOT NULL,
	`id` text NOT NULL,
	`type` text NOT NULL,
	`title` text NOT NULL,
	`body` text NOT NULL,
	`data` text NOT NULL,
	`dedupe_key` text,
	`in_app` integer NOT NULL,
	`read_at` integer,
	`mailed_at` integer,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "notifications_type" CHECK(type IN ('call_incoming', 'call_missed', 'payment_captured', 'payout_completed', 'payout_failed', 'follow_new', 'support_reply', 'broadcast')),
	CONSTRAINT "notifications_in_app" CHECK(in_app IN (0, 1))
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `notifications_unread` ON `notifications` (`user_id`,`id`) WHERE read_at IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_dedupe` ON `notifications` (`user_id`,`dedupe_key`) WHERE dedupe_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX `notifications_read_age` ON `notifications` (`created_at`) WHERE read_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `notifications_age` ON `notifications` (`created_at`);--> statement-breakpoint
CREATE INDEX `notifications_silent_age` ON `notifications` (`created_at`) WHERE in_app = 0;--> statement-breakpoint
CREATE TABLE `one_time_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`purpose` text NOT NULL,
	`user_id` text,
	`email` text,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "one_time_tokens_purpose" CHECK(purpose IN ('verify_email', 'reset_password', 'set_up'))
);
--> statement-breakpoint
CREATE INDEX `one_time_tokens_user` ON `one_time_tokens` (`user_id`,`purpose`);--> statement-breakpoint
CREATE INDEX `one_time_tokens_expiry` ON `one_time_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `outbox` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`payload` text NOT NULL,
	`created_at` integer NOT NULL,
	`run_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`leased_until` integer,
	`dead_at` integer,
	`last_error` text
);
--> statement-breakpoint
CREATE INDEX `outbox_due` ON `outbox` (`kind`,`run_at`,`id`) WHERE dead_at IS NULL;--> statement-breakpoint
CREATE INDEX `outbox_dead` ON `outbox` (`dead_at`) WHERE dead_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `outbox_dead_id` ON `outbox` (`id`) WHERE dead_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `participants` (
	`user_id` text NOT NULL,
	`conversation_id` text NOT NULL,
	`other_user_id` text NOT NULL,
	`unread_count` integer DEFAULT 0 NOT NULL,
	`last_read_seq` integer DEFAULT 0 NOT NULL,
	`last_activity_id` text NOT NULL,
	PRIMARY KEY(`user_id`, `conversation_id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`conversation_id`) REFERENCES `conversations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`other_user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "participants_unread_count" CHECK(unread_count >= 0)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `participants_inbox` ON `participants` (`user_id`,`last_activity_id`);--> statement-breakpoint
CREATE TABLE `push_tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`session_id` text NOT NULL,
	`token` text NOT NULL,
	`token_hash` text NOT NULL,
	`platform` text NOT NULL,
	`created_at` integer NOT NULL,
	`registered_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "push_tokens_platform" CHECK(platform IN ('ios', 'android', 'web'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `push_tokens_token_hash_unique` ON `push_tokens` (`token_hash`);--> statement-breakpoint
CREATE INDEX `push_tokens_user` ON `push_tokens` (`user_id`,`registered_at`);--> statement-breakpoint
CREATE INDEX `push_tokens_session` ON `push_tokens` (`session_id`);--> statement-breakpoint
CREATE TABLE `refresh_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`session_id` text NOT NULL,
	`parent_hash` text,
	`expires_at` integer NOT NULL,
	`consumed_at` integer,
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `refresh_tokens_live` ON `refresh_tokens` (`session_id`) WHERE consumed_at IS NULL;--> statement-breakpoint
CREATE INDEX `refresh_tokens_session` ON `refresh_tokens` (`session_id`);--> statement-breakpoint
CREATE INDEX `refresh_tokens_expiry` ON `refresh_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `secrets` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `sent_mails` (
	`address_hash` text NOT NULL,
	`kind` text NOT NULL,
	`at` integer NOT NULL,
	CONSTRAINT "sent_mails_kind" CHECK(kind IN ('verify_email', 'reset_password', 'password_changed'))
);
--> statement-breakpoint
CREATE INDEX `sent_mails_address` ON `sent_mails` (`address_hash`,`kind`,`at`);--> statement-breakpoint
CREATE INDEX `sent_mails_at` ON `sent_mails` (`at`);--> statement-breakpoint
CREATE TABLE `service_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`scopes` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`last_used_at` integer,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `service_keys_hash_unique` ON `service_keys` (`hash`);--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`user_agent` text,
	`ip` text,
	`created_at` integer NOT NULL,
	`last_used_at` integer NOT NULL,
	`revoked_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `sessions_user` ON `sessions` (`user_id`,`id`);--> statement-breakpoint
CREATE INDEX `sessions_last_used` ON `sessions` (`last_used_at`);--> statement-breakpoint
CREATE TABLE `signing_keys` (
	`kid` text PRIMARY KEY NOT NULL,
	`state` text NOT NULL,
	`private_key` text NOT NULL,
	`public_jwk` text NOT NULL,
	`created_at` integer NOT NULL,
	`activated_at` integer,
	`retired_at` integer,
	CONSTRAINT "signing_keys_state" CHECK(state IN ('next', 'active', 'retired'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `signing_keys_one_active` ON `signing_keys` (`state`) WHERE state = 'active';--> statement-breakpoint
CREATE UNIQUE INDEX `signing_keys_one_next` ON `signing_keys` (`state`) WHERE state = 'next';--> statement-breakpoint
CREATE TABLE `ticket_counts` (
	`assignee_id` text NOT NULL,
	`status` text NOT NULL,
	`priority` text NOT NULL,
	`category` text NOT NULL,
	`ticket_count` integer NOT NULL,
	PRIMARY KEY(`assignee_id`, `status`, `priority`, `category`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `ticket_history` (
	`id` text PRIMARY KEY NOT NULL,
	`ticket_id` text NOT NULL,
	`at` integer NOT NULL,
	`actor_id` text,
	`field` text NOT NULL,
	`from_value` text,
	`to_value` text,
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`actor_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "ticket_history_field" CHECK(field IN ('status', 'priority', 'assignee'))
);
--> statement-breakpoint
CREATE INDEX `ticket_history_ticket` ON `ticket_history` (`ticket_id`,`id`);--> statement-breakpoint
CREATE TABLE `ticket_messages` (
	`ticket_id` text NOT NULL,
	`seq` integer NOT NULL,
	`id` text NOT NULL,
	`author_id` text NOT NULL,
	`is_admin` integer NOT NULL,
	`body` text NOT NULL,
	`client_id` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`ticket_id`, `seq`),
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`author_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "ticket_messages_is_admin" CHECK(is_admin IN (0, 1))
) WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `ticket_messages_id_unique` ON `ticket_messages` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `ticket_messages_client_id` ON `ticket_messages` (`author_id`,`client_id`) WHERE client_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `ticket_notes` (
	`id` text PRIMARY KEY NOT NULL,
	`ticket_id` text NOT NULL,
	`author_id` text NOT NULL,
	`body` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`author_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `ticket_notes_ticket` ON `ticket_notes` (`ticket_id`,`id`);--> statement-breakpoint
CREATE TABLE `tickets` (
	`n` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`user_id` text NOT NULL,
	`user_seq` integer NOT NULL,
	`subject` text NOT NULL,
	`status` text NOT NULL,
	`priority` text NOT NULL,
	`category` text NOT NULL,
	`assignee_id` text,
	`message_count` integer NOT NULL,
	`owner_message_count` integer DEFAULT 0 NOT NULL,
	`owner_characters` integer DEFAULT 0 NOT NULL,
	`inbox_due_at` integer,
	`assignee_mailed_at` integer,
	`waiting_since` integer,
	`first_response_at` integer,
	`settled_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`queue_key` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`assignee_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "tickets_status" CHECK(status IN ('open', 'in_progress', 'resolved', 'closed')),
	CONSTRAINT "tickets_priority" CHECK(priority IN ('low', 'normal', 'high', 'urgent')),
	CONSTRAINT "tickets_category" CHECK(category IN ('billing', 'technical', 'account', 'other')),
	CONSTRAINT "tickets_queue_key" CHECK(queue_key = coalesce(waiting_since, 4503599627370496 - updated_at)),
	CONSTRAINT "tickets_waiting" CHECK(settled_at IS NULL OR waiting_since IS NULL),
	CONSTRAINT "tickets_settled" CHECK((status IN ('resolved', 'closed')) = (settled_at IS NOT NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tickets_id_unique` ON `tickets` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `tickets_owner` ON `tickets` (`user_id`,`user_seq`);--> statement-breakpoint
CREATE INDEX `tickets_queue` ON `tickets` (`queue_key`,`n`,`priority`,`category`);--> statement-breakpoint
CREATE INDEX `tickets_queue_status` ON `tickets` (`status`,`queue_key`,`n`,`priority`,`category`,`assignee_id`);--> statement-breakpoint
CREATE INDEX `tickets_queue_assignee` ON `tickets` (`assignee_id`,`queue_key`,`n`,`priority`,`category`);--> statement-breakpoint
CREATE INDEX `tickets_queue_user` ON `tickets` (`user_id`,`queue_key`,`n`,`status`,`priority`,`category`,`assignee_id`);--> statement-breakpoint
CREATE INDEX `tickets_inbox_due` ON `tickets` (`inbox_due_at`) WHERE inbox_due_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `tickets_settled_at` ON `tickets` (`status`,`settled_at`) WHERE settled_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `users` (
	`n` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`email` text NOT NULL,
	`display_name` text NOT NULL,
	`avatar_url` text,
	`locale` text NOT NULL,
	`role` text NOT NULL,
	`email_verified` integer DEFAULT false NOT NULL,
	`password_hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`disabled_at` integer,
	`email_bounced_at` integer,
	`access_changed_at` integer,
	`deleted_at` integer,
	CONSTRAINT "users_role" CHECK(role IN ('guest', 'user', 'verified_user', 'host', 'admin')),
	CONSTRAINT "users_locale" CHECK(locale IN ('en', 'de', 'es', 'fr', 'pt')),
	CONSTRAINT "users_email_verified" CHECK(email_verified IN (0, 1))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_id_unique` ON `users` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `users_email_unique` ON `users` (`email`);--> statement-breakpoint
CREATE INDEX `users_access_changed_at` ON `users` (`access_changed_at`) WHERE access_changed_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `users_present` ON `users` (`id`) WHERE deleted_at IS NULL;--> statement-breakpoint
CREATE INDEX `users_present_role` ON `users` (`role`,`id`) WHERE deleted_at IS NULL;--> statement-breakpoint
CREATE INDEX `users_present_name` ON `users` (display_name COLLATE NOCASE) WHERE deleted_at IS NULL;--> statement-breakpoint
CREATE TABLE `vapid_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`private_key` text NOT NULL,
	`public_key` text NOT NULL,
	CONSTRAINT "vapid_keys_one" CHECK(id = 1)
);
--> statement-breakpoint
-- Retention removes what is old: a month stays, whatever is configured.
CREATE TRIGGER `audit_log_keeps_rows` BEFORE DELETE ON `audit_log`
WHEN old.`at` > (unixepoch() - 30 * 86400) * 1000
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_log_keeps_words` BEFORE UPDATE OF `id`, `at`, `action`, `actor_type`, `actor_id`, `target_type`, `target_id` ON `audit_log` BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
-- The addresses of somebody who is gone are the one thing that may change.
CREATE TRIGGER `audit_log_keeps_addresses` BEFORE UPDATE OF `ip`, `details` ON `audit_log`
WHEN NOT EXISTS (SELECT 1 FROM `users` WHERE `id` = old.`actor_id` AND `deleted_at` IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
-- People by any part of their name or address; the texts themselves are kept in `users`. What changes or is erased leaves
-- nothing behind in the index; somebody who is gone is not in it. Names that are shorter than its parts have an index of their own.
CREATE VIRTUAL TABLE `user_search` USING fts5(
	display_name, email, content='users', content_rowid='n', tokenize="trigram remove_diacritics 1"
);
--> statement-breakpoint
INSERT INTO `user_search` (`user_search`, `rank`) VALUES ('secure-delete', 1);
--> statement-breakpoint
CREATE TRIGGER `user_search_insert` AFTER INSERT ON `users` BEGIN
	INSERT INTO `user_search` (rowid, display_name, email) VALUES (new.`n`, new.`display_name`, new.`email`);
END;--> statement-breakpoint
CREATE TRIGGER `user_search_update` AFTER UPDATE OF `display_name`, `email` ON `users`
WHEN old.`deleted_at` IS NULL AND (old.`display_name` <> new.`display_name` OR old.`email` <> new.`email`) BEGIN
	INSERT INTO `user_search` (`user_search`, rowid, display_name, email)
	VALUES ('delete', old.`n`, old.`display_name`, old.`email`);
	INSERT INTO `user_search` (rowid, display_name, email)
	SELECT new.`n`, new.`display_name`, new.`email` WHERE new.`deleted_at` IS NULL;
END;--> statement-breakpoint
CREATE INDEX `users_short_names` ON `users` (`display_name` COLLATE NOCASE) WHERE length(`display_name`) < 3;
--> statement-breakpoint
-- A broadcast reaches who is not disabled. A removed account follows nobody.
CREATE TRIGGER `follows_added` AFTER INSERT ON `follows`
WHEN (SELECT `disabled_at` IS NULL FROM `users` WHERE `id` = new.`follower_id`) BEGIN
	INSERT INTO `audiences` VALUES (new.`host_id`, 1)
	ON CONFLICT DO UPDATE SET `follower_count` = `follower_count` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `follows_removed` AFTER DELETE ON `follows`
WHEN (SELECT `disabled_at` IS NULL FROM `users` WHERE `id` = old.`follower_id`) BEGIN
	UPDATE `audiences` SET `follower_count` = `follower_count` - 1 WHERE `host_id` = old.`host_id`;
END;--> statement-breakpoint
CREATE TRIGGER `follows_disabled` AFTER UPDATE OF `disabled_at` ON `users`
WHEN (old.`disabled_at` IS NULL) <> (new.`disabled_at` IS NULL) BEGIN
	INSERT INTO `audiences` SELECT `host_id`, 1 FROM `follows` WHERE `follower_id` = new.`id`
	ON CONFLICT DO UPDATE SET
		`follower_count` = `follower_count` + (new.`disabled_at` IS NULL) - (old.`disabled_at` IS NULL);
END;--> statement-breakpoint
CREATE INDEX `notifications_named` ON `notifications` (coalesce(json_extract(`data`, '$.follower_id'), json_extract(`data`, '$.guest_id'), json_extract(`data`, '$.host_id')), `id`)
WHERE coalesce(json_extract(`data`, '$.follower_id'), json_extract(`data`, '$.guest_id'), json_extract(`data`, '$.host_id')) IS NOT NULL;
--> statement-breakpoint
-- The totals are true after every statement, whatever it was.
CREATE TRIGGER `notifications_added` AFTER INSERT ON `notifications` WHEN new.`in_app` BEGIN
	INSERT INTO `notification_counts` VALUES (new.`user_id`, 1, new.`read_at` IS NULL)
	ON CONFLICT (`user_id`) DO UPDATE SET
		`total_count` = `total_count` + 1,
		`unread_count` = `unread_count` + (new.`read_at` IS NULL);
END;--> statement-breakpoint
CREATE TRIGGER `notifications_read` AFTER UPDATE OF `read_at` ON `notifications`
WHEN new.`in_app` AND (old.`read_at` IS NULL) <> (new.`read_at` IS NULL) BEGIN
	UPDATE `notification_counts`
	SET `unread_count` = `unread_count` + (new.`read_at` IS NULL) - (old.`read_at` IS NULL)
	WHERE `user_id` = new.`user_id`;
END;--> statement-breakpoint
CREATE TRIGGER `notifications_removed` AFTER DELETE ON `notifications` WHEN old.`in_app` BEGIN
	UPDATE `notification_counts`
	SET `total_count` = `total_count` - 1, `unread_count` = `unread_count` - (old.`read_at` IS NULL)
	WHERE `user_id` = old.`user_id`;
END;
--> statement-breakpoint
-- One row for each ticket, found by any of its words; the words themselves are kept in `tickets` and `ticket_messages`.
-- `facets` says what is filtered with a search, so that the index alone can tell what matches.
-- A beginning of a length that is not listed gathers every ticket with such a word before the first is shown; few of the
-- words that many tickets share are longer. Positions of words are not kept, so a word must never be taken apart: marks
-- belong to it.
CREATE VIRTUAL TABLE `ticket_search` USING fts5(
	id, subject, body, facets,
	content='', contentless_delete=1, detail=column,
	tokenize="unicode61 remove_diacritics 2 categories 'L* N* M* Co'",
	prefix='2 3 4 5 6 7 8'
);
--> statement-breakpoint
-- Each commit that changes tickets adds a segment. No change waits while segments are merged: the server merges eight of
-- a size at a time, in small steps between requests. A change merges by itself only when the server falls far behind.
INSERT INTO `ticket_search` (`ticket_search`, `rank`) VALUES ('automerge', 0), ('usermerge', 8), ('crisismerge', 64);
--> statement-breakpoint
-- Bounded, as each change of the ticket writes it again: the opening message and the newest hundred, 6,000 characters.
CREATE TRIGGER `ticket_search_update` AFTER UPDATE ON `tickets`
WHEN old.`message_count` <> new.`message_count` OR old.`status` <> new.`status` OR old.`priority` <> new.`priority`
	OR old.`category` <> new.`category` OR old.`assignee_id` IS NOT new.`assignee_id`
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
	);
END;
--> statement-breakpoint
CREATE TRIGGER `ticket_counts_insert` AFTER INSERT ON `tickets`
BEGIN
	INSERT INTO `ticket_counts` VALUES (
		coalesce(new.`assignee_id`, ''), new.`status`, new.`priority`, new.`category`, 1
	) ON CONFLICT DO UPDATE SET `ticket_count` = `ticket_count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `ticket_counts_update` AFTER UPDATE ON `tickets`
WHEN old.`status` <> new.`status` OR old.`priority` <> new.`priority` OR old.`category` <> new.`category`
	OR old.`assignee_id` IS NOT new.`assignee_id`
BEGIN
	UPDATE `ticket_counts` SET `ticket_count` = `ticket_count` - 1
	WHERE `assignee_id` = coalesce(old.`assignee_id`, '') AND `status` = old.`status`
		AND `priority` = old.`priority` AND `category` = old.`category`;
	INSERT INTO `ticket_counts` VALUES (
		coalesce(new.`assignee_id`, ''), new.`status`, new.`priority`, new.`category`, 1
	) ON CONFLICT DO UPDATE SET `ticket_count` = `ticket_count` + 1;
END;
