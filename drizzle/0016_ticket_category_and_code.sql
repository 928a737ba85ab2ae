-- In place: a rebuilt table would copy the whole history.
ALTER TABLE `ticket_history` DROP CONSTRAINT `ticket_history_field`;--> statement-breakpoint
ALTER TABLE `ticket_history` ADD CONSTRAINT `ticket_history_field` CHECK(field IN ('status', 'priority', 'category', 'assignee'));
--> statement-breakpoint
-- The desk finds a ticket by the end of its id.
CREATE INDEX `tickets_code` ON `tickets` (substr(`id`, -6));
