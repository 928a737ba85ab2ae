import type { Report } from '../../../../client/src/contract.ts'

export const reasonTitles: Record<Report['reason'], string> = {
  spam: 'Spam',
  harassment: 'Harassment',
  fraud: 'Fraud',
  sexual: 'Sexual content',
  other: 'Something else',
}
