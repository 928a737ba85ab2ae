ALTER TABLE `one_time_tokens` ADD `failures` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `one_time_tokens` DROP CONSTRAINT `one_time_tokens_purpose`;--> statement-breakpoint
ALTER TABLE `one_time_tokens` ADD CONSTRAINT `one_time_tokens_purpose`
	CHECK(purpose IN ('verify_email', 'reset_password', 'set_up', 'change_email', 'undo_email', 'confirm'));--> statement-breakpoint
ALTER TABLE `sent_mails` DROP CONSTRAINT `sent_mails_kind`;--> statement-breakpoint
ALTER TABLE `sent_mails` ADD CONSTRAINT `sent_mails_kind`
	CHECK(kind IN ('verify_email', 'reset_password', 'password_changed', 'change_email', 'confirm'));
