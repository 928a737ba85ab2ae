-- In place: a rebuilt table would lose its triggers.
ALTER TABLE `notifications` DROP CONSTRAINT `notifications_type`;--> statement-breakpoint
ALTER TABLE `notifications` ADD CONSTRAINT `notifications_type` CHECK(type IN ('call_incoming', 'call_missed', 'payment_captured', 'payout_completed', 'payout_failed', 'follow_new', 'support_reply', 'broadcast') OR type GLOB 'custom.*');
