ALTER TABLE `outbox` RENAME COLUMN `lane` TO `receiver`;--> statement-breakpoint
ALTER TABLE `outbox` DROP COLUMN `leased_until`;--> statement-breakpoint
ALTER TABLE `push_tokens` ADD `service` text DEFAULT 'fcm' NOT NULL;--> statement-breakpoint
UPDATE `push_tokens` SET `service` = (
  SELECT substr(`rest`, 1, instr(`rest` || '/', '/') - 1)
  FROM (SELECT substr(CASE WHEN json_valid(`token`) THEN `token` ->> '$.endpoint' END, 9) AS `rest`)
) WHERE `platform` = 'web' AND CASE WHEN json_valid(`token`) THEN `token` ->> '$.endpoint' END LIKE 'https://%';
