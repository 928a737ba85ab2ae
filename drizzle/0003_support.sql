CREATE TABLE `canned_replies` (
	`id` text PRIMARY KEY NOT NULL,
	`title` text NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
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
CREATE INDEX `tickets_queue` ON `tickets` (`queue_key`,`n`);--> statement-breakpoint
CREATE INDEX `tickets_queue_status` ON `tickets` (`status`,`queue_key`,`n`,`priority`,`category`,`assignee_id`);--> statement-breakpoint
CREATE INDEX `tickets_queue_priority` ON `tickets` (`priority`,`queue_key`,`n`,`status`,`category`,`assignee_id`);--> statement-breakpoint
CREATE INDEX `tickets_queue_category` ON `tickets` (`category`,`queue_key`,`n`,`status`,`priority`,`assignee_id`);--> statement-breakpoint
CREATE INDEX `tickets_queue_assignee` ON `tickets` (`assignee_id`,`queue_key`,`n`,`status`,`priority`,`category`);--> statement-breakpoint
CREATE INDEX `tickets_queue_user` ON `tickets` (`user_id`,`queue_key`,`n`,`status`,`priority`,`category`,`assignee_id`);--> statement-breakpoint
CREATE INDEX `tickets_settled_at` ON `tickets` (`status`,`settled_at`) WHERE settled_at IS NOT NULL;--> statement-breakpoint
-- One row for each ticket, found by any of its words; the words themselves are kept in `tickets` and `ticket_messages`.
-- `facets` says what is filtered with a search, so that the index alone can tell what matches.
-- A beginning of a length that is not listed would gather every ticket with such a word before the first is shown; few
-- words are longer.
CREATE VIRTUAL TABLE `ticket_search` USING fts5(
	id, subject, body, facets,
	content='', contentless_delete=1,
	tokenize="unicode61 remove_diacritics 2",
	prefix='2 3 4 5 6 7 8 9 10 11 12'
);
--> statement-breakpoint
-- Each change of a ticket is a segment of its own. Merged in parts of eight instead of four, a change writes less again of
-- what is there: 200,000 tickets are as quick to change as 2,000, and no merge stands in the way for long.
INSERT INTO `ticket_search` (`ticket_search`, `rank`) VALUES ('automerge', 8);
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
