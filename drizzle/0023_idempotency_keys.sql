CREATE TABLE `idempotency_keys` (
	`hash` text PRIMARY KEY NOT NULL,
	`content_hash` text NOT NULL,
	`target_id` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `idempotency_keys_created` ON `idempotency_keys` (`created_at`);