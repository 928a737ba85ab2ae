-- A notification can name more than one person.
DROP INDEX `notifications_named`;
--> statement-breakpoint
CREATE INDEX `notifications_host` ON `notifications` (json_extract(`data`, '$.host_id'), `id`)
WHERE json_extract(`data`, '$.host_id') IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `notifications_guest` ON `notifications` (json_extract(`data`, '$.guest_id'), `id`)
WHERE json_extract(`data`, '$.guest_id') IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `notifications_follower` ON `notifications` (json_extract(`data`, '$.follower_id'), `id`)
WHERE json_extract(`data`, '$.follower_id') IS NOT NULL;
